"""`qdsweep watch`: a sweep while it runs, read only from what its runs write into state/."""
