"""Statistics and tags of many files at once, as columns that planning compares."""
