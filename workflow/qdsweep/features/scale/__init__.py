"""Measures how an experiment scales with its workers."""
