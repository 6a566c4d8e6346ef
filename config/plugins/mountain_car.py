"""Example of your own gymnasium task: your own measures, and a neural network as the policy.

`config/domains/mountain_car.yaml` names it as `mountain_car:MountainCar`, and the experiment
`mountain_car` sweeps it. `qdsweep check mountain_car:MountainCar` tests it.
"""

import gymnasium as gym
import numpy as np

from qdsweep.domains.base import Evaluation

SCALE = np.array([1.0, 0.05])  # scales of position [m] and velocity [m per step]


class MountainCar:
    """A car that is too weak for its hill, MountainCarContinuous-v0: it must swing to get up.

    The policy is a network with one hidden layer: force = tanh(v . tanh(W x + b) + c).
    Objective: the return, 100 at the goal minus the fuel. Measures: how often the car turns round,
    and how hard it pushes on average.
    """

    def __init__(self, hidden: int = 8) -> None:
        self.hidden = hidden
        self.solution_dim = 4 * hidden + 1  # W (hidden, 2), b, v (hidden,), c
        self.measures = {"turns": (0.0, 40.0), "mean force": (0.0, 1.0)}
        self.objective_range = (-100.0, 100.0)
        self.fields = {}  # an elite has no further values
        self.step = 1.0  # mutation scale [weights]; the search starts at 0
        # `qdsweep rollout` films the environment of gymnasium.make without further code.
        self.env = gym.make("MountainCarContinuous-v0")

    def evaluate(self, solutions, seeds):
        """Drives one episode per row. All its randomness comes from the seed of the row."""
        rows = zip(solutions, seeds, strict=True)
        results = np.array([self.drive(weights, int(seed)) for weights, seed in rows])
        return Evaluation(results[:, 0], results[:, 1:])

    def drive(self, weights, seed):
        """Returns objective and measures of an episode."""
        h = self.hidden
        w, b, v, c = weights[: 2 * h].reshape(h, 2), *np.split(weights[2 * h :], [h, 2 * h])
        observation, _ = self.env.reset(seed=seed)
        total, forces, velocities, ended = 0.0, [], [], False
        while not ended:
            force = np.tanh(v @ np.tanh(w @ (observation / SCALE) + b) + c)
            observation, reward, terminated, truncated, _ = self.env.step(force)
            total += float(reward)
            forces.append(abs(float(force[0])))
            velocities.append(float(observation[1]))
            ended = terminated or truncated
        turns = np.count_nonzero(np.diff(np.sign(velocities)))
        return [total, float(turns), float(np.mean(forces))]
