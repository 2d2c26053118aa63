"""Declare kernels, and load their machine code from the library that the build made.

In: plain Python functions with declared types. Out: callables that run as machine code.
Nothing here imports Numba: only `kernels/compile` does, which runs when the package is built.
"""
