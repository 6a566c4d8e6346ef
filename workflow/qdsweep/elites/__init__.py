"""Work on finished elites: re-evaluation, and animations of their episodes."""
