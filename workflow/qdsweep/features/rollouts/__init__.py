"""Animations: episodes of elites, and archives over time."""
