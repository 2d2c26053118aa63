"""A deterministic simulation: writers, loaders, upkeep and readers of one table.

In comes a seed, which decides what each actor does, whose turn it is at each storage call, and
which calls fail. The package's real code runs against a simulated object store and clock. Out
comes whether each version is what a plain model of the table says, and if not, a trace that the
same seed repeats. See `python -m tests.simulation --help`.
"""
