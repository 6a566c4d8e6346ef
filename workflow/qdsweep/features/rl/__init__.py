"""Reinforcement learning: A2C, PPO, IMPALA, DQN and Ape-X DQN."""
