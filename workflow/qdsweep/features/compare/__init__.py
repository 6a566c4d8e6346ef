"""Several sweeps in one table and on one page."""
