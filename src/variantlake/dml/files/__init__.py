"""What a change of rows writes: new and rewritten files, deletion vectors, change files."""
