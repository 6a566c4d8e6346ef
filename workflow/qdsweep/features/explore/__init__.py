"""`qdsweep explore`: a page with the maps of archives; a click on a cell plays its elite."""

NEEDS = ("compare", "rollouts")
