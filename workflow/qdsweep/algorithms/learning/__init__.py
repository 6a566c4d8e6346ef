"""Algorithms that estimate gradients, or learn them from the steps of the episodes."""
