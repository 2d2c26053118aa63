"""Read and write the metadata of Parquet files: footer, schema tree, page headers, annotation.

In: the unchecked last bytes of a file and the headers of its pages.
Out: frozen descriptions in the specification's terms; a footer with the VARIANT annotation.
"""
