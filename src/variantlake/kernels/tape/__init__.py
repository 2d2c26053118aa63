"""The tape: a columnar record of every node of a batch of documents, and its building blocks.

In: what readers of JSON text, Variant bytes or shredded columns find.
Out: the one form that all writers take, so that N readers and M writers need no N times M paths.
"""
