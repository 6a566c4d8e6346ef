"""How an experiment scales with its workers."""
