"""Writing checkpoints, and cleaning up the log behind them.

In: the state of a version. Out: classic and V2 checkpoints with sidecars; a log without the
commits that no reader of a kept version needs.
"""
