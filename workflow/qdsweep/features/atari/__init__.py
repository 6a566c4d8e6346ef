"""Atari games of the Arcade Learning Environment."""
