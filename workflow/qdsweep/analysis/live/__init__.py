"""`qdsweep watch`: a sweep while it runs, from nothing but what its runs write into state/."""
