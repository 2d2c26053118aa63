"""Infer a shredding schema: which paths of a Variant deserve a typed column.

In: a sample of documents, or its profile; hints; options.
Out: the schema, and for each path the reason why it became a column or did not.
"""
