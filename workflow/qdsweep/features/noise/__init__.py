"""Noise inside the search: solutions are evaluated again, and archives keep several a cell."""
