"""Compile kernels to a shared library when the package is built: the one part that needs Numba."""
