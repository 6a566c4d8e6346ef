"""Results of runs in Python: loads, merges and imports them, and takes snapshots."""
