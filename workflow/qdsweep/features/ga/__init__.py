"""The genetic algorithm of Such et al. (2017)."""
