"""Computes a sample of a table of runs again, and compares the bits."""

NEEDS = ("compare",)
