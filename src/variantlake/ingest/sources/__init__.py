"""Where documents come from: files, globs, object stores, streams; lines and elements.

In: what the user named. Out: splits of bounded size, and blocks of complete documents.
"""
