"""Algorithms that learn from episodes by TD3, or estimate gradients as evolution strategies."""
