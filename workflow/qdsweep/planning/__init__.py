"""What the start of a sweep does in Snakemake's main process."""
