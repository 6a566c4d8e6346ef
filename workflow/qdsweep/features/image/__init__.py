"""Runs every process of a run inside one Apptainer (Singularity) image."""
