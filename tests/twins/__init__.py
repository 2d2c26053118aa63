"""Plain twins of kernels that only tests call: what the kernels must give, in plain Python."""
