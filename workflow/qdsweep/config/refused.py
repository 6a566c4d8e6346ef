"""Names of algorithms that are known elsewhere, why they are none here, and what to take."""

ALGORITHMS = {
    "apex": "its actors and its learner race, so a run could not be repeated; take apex_dqn, which "
    "is Ape-X DQN in step",
    "apex_dpg": "Ape-X is here for discrete actions alone; take td3 for vectors",
    "rainbow": "a solution is the network of a policy, which Rainbow's duelling and distributional "
    "networks are not; take apex_dqn, which has its double Q-learning, its prioritised replay and "
    "its n-step returns",
    "sac": "a solution is the network of a policy, in which the deviations of SAC's actor have no "
    "place; take td3 or ppo",
    "td3_sb3": "TD3 is here without torch; take td3",
    "ddpg": "take td3, which came after it",
    "trpo": "take ppo, which came after it",
    "r2d2": "a policy here has no state that an episode carries on; take apex_dqn, its forerunner",
    "a3c": "its actors race, so a run could not be repeated; take a2c, which is it in step",
    "appo": "its actors race, so a run could not be repeated; take ppo or impala",
}
