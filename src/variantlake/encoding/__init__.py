"""Encode and decode single Variants in plain Python: the reference for every kernel.

In: JSON text, Python objects, Arrow scalars, or the unchecked bytes of a Variant.
Out: `Variant` values, their bytes (`metadata` and `value`), JSON text, Python objects.
Clarity comes before speed. Most modules follow one section of the Variant encoding specification.
"""
