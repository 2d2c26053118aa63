"""Hostile bytes for everything that reads bytes from outside, guided by what the code does.

`python -m tests.fuzz --seconds 600` fuzzes each target of `targets.TARGETS` in a process of its
own. atheris sees which branches of the package an input takes, and goes on from those that take
new ones. See `python -m tests.fuzz --help`, which `make fuzz` runs.
"""
