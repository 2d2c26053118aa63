"""DELETE, UPDATE and MERGE: find rows, mark or rewrite their files, and commit once.

In: a snapshot, a condition or rows that a caller found, and new rows. Out: one commit that removes
and adds rows, with conflicts checked row by row, and a result that counts what it did.
Nothing here starts Spark. The code that finds rows with Spark calls the same functions.
"""
