"""What is done with finished elites: evaluated again, shown at their task."""
