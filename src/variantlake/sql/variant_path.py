"""The paths that Spark's `variant_get` takes, by Spark's own grammar.

It is not RFC 9535: quoted keys know no escapes, and a key after a dot goes on to the next dot or
bracket, blanks and quotes included. A path that this grammar does not take is left to Spark.
"""

from __future__ import annotations

import re

from variantlake.paths import Path

_STEP = re.compile(
    r"""\.(?P<key>[^.\[]+)|\['(?P<single>[^']+)'\]|\["(?P<double>[^"]+)"\]|\[(?P<index>[0-9]+)\]"""
)
_MAX_INDEX = 2**31 - 1


def variant_path(text: str) -> Path | None:
    """The steps of a path in `variant_get`, None when Spark may read it in another way."""
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        if match["index"] is not None:
            index = int(match["index"])
            if index > _MAX_INDEX:
                return None
            steps.append(index)
        else:
            steps.append(match["key"] or match["single"] or match["double"])
        position = match.end()
    return Path(tuple(steps))
