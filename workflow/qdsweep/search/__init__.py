"""What a search decides: pure functions of its settings and of recorded tables."""
