"""Write checkpoints, and clean up the log before them.

In: the state of a version. Out: classic checkpoints and V2 checkpoints with sidecars; a log without
commits that no reader of a retained version needs.
"""
