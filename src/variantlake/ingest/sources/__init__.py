"""Find and read the sources of documents: files, globs, object stores, streams.

In: the paths, URLs or streams that the user names. Out: splits of bounded size, and blocks of
complete documents.
"""
