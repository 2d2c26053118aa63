"""What a table supports and demands: features, properties, row tracking, clustering.

In: protocol and properties of a table. Out: whether we may read or write it, and what new files
and commits must contain. Unknown features are refused by name.
"""
