"""A table's schema: Delta's JSON form, DDL text, Arrow's form, and column mapping.

In: `schemaString`, DDL or an Arrow schema. Out: the same schema in the other forms, with physical
names and ids if the table maps its columns.
"""
