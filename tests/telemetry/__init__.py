"""Figures and spans of the work."""
