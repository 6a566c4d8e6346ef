"""External results: runs that were computed elsewhere."""
