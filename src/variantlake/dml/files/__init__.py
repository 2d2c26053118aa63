"""Writing the files of a change of rows: new and rewritten files, vectors, change files."""
