"""Convert a table's schema between Delta's JSON, DDL text and Arrow, and map its columns.

In: `schemaString`, DDL or an Arrow schema. Out: the same schema in the other forms, with physical
names and ids if the table maps its columns.
"""
