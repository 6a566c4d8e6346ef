"""The warm start: local runs are forks of one process that has imported and compiled all."""
