"""The decisions of a search: pure functions of its settings and of recorded tables."""
