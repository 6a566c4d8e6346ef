"""Published values that the groups of a sweep are compared with."""
