"""Contracts of documents."""
