"""The warm start: one process that has imported and compiled, from which local runs are forked."""
