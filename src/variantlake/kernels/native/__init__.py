"""Declaring kernels, and loading their machine code from the library that the build made.

In: plain Python functions with declared types. Out: callables that run as machine code.
Nothing here imports Numba: that is for `kernels/compile`, which runs when the package is built.
"""
