"""Run directories -> tables."""
