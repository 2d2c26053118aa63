"""Read JSON text into a tape, and write a tape as JSON text.

In: any bytes from outside. Out: a tape, or text in Spark's form of JSON. Numbers, strings and lines
have a module each.
"""
