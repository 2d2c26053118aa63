"""What a load may be asked: keywords, limits of files and of bad rows.

In: values as users give them. Out: one `LoadOptions`, or `InvalidValue` by name.
"""
