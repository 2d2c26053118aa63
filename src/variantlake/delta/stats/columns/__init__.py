"""Decode statistics and tags of many files at once, into columns that planning compares."""
