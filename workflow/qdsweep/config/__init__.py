"""Config: models, composition and messages. Imports neither numpy nor ribs."""
