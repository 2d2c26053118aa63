"""The tape: a columnar record of every node of a batch of documents, and what it is made with.

In: what a reader of JSON text, of Variant bytes or of shredded columns found.
Out: the one form that all writers take, so that there are N readers and M writers, not N times M.
"""
