"""Config files: their models, how they are composed, and messages. No numpy, no ribs."""
