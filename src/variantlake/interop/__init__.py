"""Tables in other engines: their projections and conditions become those of a scan.

In: a scan, and an engine that asks for some of its columns and rows. Out: these, of the files that
may hold them. Each engine is optional, and loaded when somebody asks for it.
"""
