"""One Variant value in plain Python: the reference that every kernel is compared with."""
