"""Tests of clones."""
