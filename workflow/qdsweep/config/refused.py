"""Algorithms and emitters that qdsweep refuses by name, with the reason and the replacement."""

# Algorithms of other libraries -> why qdsweep does not have them, and the replacement.
ALGORITHMS = {
    "apex": (
        "its actors and its learner are asynchronous, so a run could not be repeated. Use "
        "apex_dqn, the synchronous form of Ape-X DQN"
    ),
    "apex_dpg": "qdsweep has Ape-X only for discrete actions. Use td3 for vectors",
    "rainbow": (
        "a solution is the network of a policy, and Rainbow's duelling and distributional "
        "networks are not policies. Use apex_dqn, which has its double Q-learning, its "
        "prioritised replay and its n-step returns"
    ),
    "sac": (
        "a solution is the network of a policy, and the standard deviations of SAC's actor do not "
        "fit into it. Use td3 or ppo"
    ),
    "td3_sb3": "qdsweep has TD3 without torch. Use td3",
    "ddpg": "use td3, its successor",
    "trpo": "use ppo, its successor",
    "r2d2": "a policy here has no recurrent state. Use apex_dqn, its predecessor",
    "a3c": (
        "its actors are asynchronous, so a run could not be repeated. Use a2c, its synchronous form"
    ),
    "appo": "its actors are asynchronous, so a run could not be repeated. Use ppo or impala",
}
# Parts of pyribs that do not work, or not with the same archive digest each time.
EMITTERS = {
    "pycma_es": "pycma_es does not pickle, so a run could not be resumed. Use cma_es",
    "bayesian_opt": (
        "the Bayesian-optimisation emitter gives two results for one seed, so a run could not be "
        "repeated. Use evolution_strategy"
    ),
}
