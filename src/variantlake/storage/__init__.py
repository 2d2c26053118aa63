"""Where files are kept: local disks and object stores, behind the same calls."""
