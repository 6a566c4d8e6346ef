"""Computes a sample of a table of runs, or of an exported sweep, again, and compares the bits."""

NEEDS = ("compare",)
