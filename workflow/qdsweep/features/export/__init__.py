"""A sweep as a file for a double-blind review."""

NEEDS = ("compare",)
