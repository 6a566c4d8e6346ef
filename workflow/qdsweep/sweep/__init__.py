"""From a sweep's text to its runs: grammar, table and ids."""
