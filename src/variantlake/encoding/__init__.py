"""One Variant value in plain Python: the reference that every kernel is compared with.

In: JSON text, Python objects, Arrow scalars, or the bytes of a Variant, which nobody has checked.
Out: `Variant` values, their bytes (`metadata` and `value`), JSON text, Python objects.
Clear before fast: a module follows one section of the Variant encoding specification.
"""
