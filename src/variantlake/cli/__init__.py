"""The `variantlake` command: one file a group of commands.

In: arguments, a terminal or a pipe. Out: tables for people, JSON lines for programs, one sentence
for an error, and exit codes: 0 fine, 1 failed, 2 wrong usage.
"""
