"""How tests start Java."""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
"""Tests plan thousands of queries and run each once: a third of the time went into compiling what
is not run again, and into threads of the collector. With that compiler alone the JVM keeps 48 MB of
code, which queries fill: a quarter of the time then went into looking for code to drop."""

ROOM = "-Xms1g -Xmn512m"
"""Of the heap, for a driver of 2 GB from its start: a growing one costs a fifteenth of the time."""
