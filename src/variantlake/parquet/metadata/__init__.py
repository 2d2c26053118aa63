"""What a Parquet file says about itself: footer, schema tree, page headers, annotation.

In: the last bytes of a file and the headers of its pages, which nobody has checked.
Out: frozen descriptions in the specification's terms; a footer with the VARIANT annotation.
"""
