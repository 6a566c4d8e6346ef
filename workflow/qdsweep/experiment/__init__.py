"""One run: the loop, its reload files, metrics, log, lock and signals."""
