"""TD3 in torch: what ours is held equal to, and the peer of learning.py.

    python benchmarks/td3_torch.py                  writes tests/fixtures/td3_torch.npz
    python benchmarks/td3_torch.py --time REPEATS   CPU seconds of both, as JSON

Its Python has torch 2.13.0 and what ours has. It begins with our parameters and takes our
transitions and noise; networks, gradients and Adam are torch's.
"""

import argparse
import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from td3_cases import CASES, OUTPUTS, learner, outputs, solutions_of  # noqa: E402
from torch.nn.functional import mse_loss  # noqa: E402
from torch.nn.utils import parameters_to_vector, vector_to_parameters  # noqa: E402

from qdsweep.features.learning.td3 import TD3  # noqa: E402

ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
# PGA-ME's iteration, as DQD-RL has it.
STEPS, VARIED, ASCENT = 300, 49, {"steps": 10, "batch": 256, "lr": 1e-3}


class Torch:
    """What TD3 does, by torch, with its quicker Adam (fused)."""

    def __init__(self, case: str, ours: TD3) -> None:
        _, self.shape, self.settings = CASES[case]
        self.replay, self.rng = ours.replay, copy.deepcopy(ours.rng)
        self.dtype = torch.from_numpy(ours.actor).dtype
        self.steps = 0
        settings, shape = self.settings, self.shape
        sizes = [shape.shapes[-1][0] + shape.shapes[0][1], *settings.critic_hidden, 1]
        critic = list(zip(sizes[1:], sizes[:-1], strict=True))
        act = ACTIVATIONS[shape.activation]
        self.net = self.network(shape.shapes, shape.bias, act, torch.nn.Tanh(), ours.actor)
        self.target = copy.deepcopy(self.net)
        self.pair = [
            self.network(critic, True, torch.nn.ReLU, torch.nn.Identity(), parameters)
            for parameters in ours.critics
        ]
        self.target_pair = copy.deepcopy(self.pair)
        self.actor_adam = torch.optim.Adam(self.net.parameters(), lr=settings.actor_lr, fused=True)
        both = [*self.pair[0].parameters(), *self.pair[1].parameters()]
        self.critic_adam = torch.optim.Adam(both, lr=settings.critic_lr, fused=True)

    def network(
        self, shapes: Any, bias: bool, activation: Any, last: torch.nn.Module, flat: np.ndarray
    ) -> torch.nn.Sequential:
        """A network with these parameters."""
        modules: list[torch.nn.Module] = []
        for size, inputs in shapes:
            modules += [torch.nn.Linear(inputs, size, bias, dtype=self.dtype), activation()]
        made = torch.nn.Sequential(*modules[:-1], last)
        vector_to_parameters(torch.tensor(flat, dtype=self.dtype), made.parameters())
        return made

    def train(self, steps: int) -> None:
        """As ours."""
        settings = self.settings
        for _ in range(steps):
            self.steps += 1
            drawn = self.replay.draw(self.rng, settings.minibatch)
            noise = self.rng.standard_normal((settings.minibatch, self.shape.shapes[-1][0]), "f4")
            noise = settings.policy_noise * torch.from_numpy(noise)
            noise = noise.clamp(-settings.noise_clip, settings.noise_clip)
            inputs, rewards, following, ends = (torch.from_numpy(x).to(self.dtype) for x in drawn)
            with torch.no_grad():
                actions = (self.target(following) + noise).clamp(-1, 1)
                x = torch.cat([following, actions], 1)
                value = torch.min(self.target_pair[0](x), self.target_pair[1](x))
                done = ends > 0 if settings.limit_is_end else ends == 1
                wanted = rewards[:, None] + settings.gamma * value * ~done[:, None]
            loss = sum(mse_loss(critic(inputs), wanted) for critic in self.pair)
            self.critic_adam.zero_grad()
            loss.backward()
            self.critic_adam.step()
            if self.steps % settings.policy_delay == 0:
                self.actor_adam.zero_grad()
                self.loss(self.net, inputs[:, : following.shape[1]]).backward()
                self.actor_adam.step()
                with torch.no_grad():
                    for target, module in zip(
                        [self.target, *self.target_pair], [self.net, *self.pair], strict=True
                    ):
                        moved, towards = list(target.parameters()), list(module.parameters())
                        torch._foreach_lerp_(moved, towards, settings.tau)

    def loss(self, net: torch.nn.Module, observations: torch.Tensor) -> torch.Tensor:
        """The negative mean of the first critic."""
        return -self.pair[0](torch.cat([observations, net(observations)], 1)).mean()

    def ascend(self, solutions: np.ndarray, steps: int, batch: int, lr: float) -> np.ndarray:
        """As ours."""
        return np.stack([self.climb(solution, steps, batch, lr) for solution in solutions])

    def climb(self, solution: np.ndarray, steps: int, batch: int, lr: float) -> np.ndarray:
        """One of `ascend`."""
        net = copy.deepcopy(self.net)
        vector_to_parameters(torch.tensor(solution, dtype=self.dtype), net.parameters())
        adam = torch.optim.Adam(net.parameters(), lr=lr, fused=True)
        drawn = self.replay.draw_observations(self.rng, steps * batch)
        for of_step in torch.from_numpy(drawn).to(self.dtype).split(batch):
            adam.zero_grad()
            # By the actor only: the critic's own gradients would cost more.
            parameters = list(net.parameters())
            computed = torch.autograd.grad(self.loss(net, of_step), parameters)
            for parameter, gradient in zip(parameters, computed, strict=True):
                parameter.grad = gradient
            adam.step()
        return flat(net)

    def gradient(self, solution: np.ndarray, observations: int) -> np.ndarray:
        """As ours."""
        net = copy.deepcopy(self.net)
        vector_to_parameters(torch.tensor(solution, dtype=self.dtype), net.parameters())
        drawn = torch.from_numpy(self.replay.draw_observations(self.rng, observations))
        computed = torch.autograd.grad(-self.loss(net, drawn.to(self.dtype)), [*net.parameters()])
        return np.concatenate([gradient.reshape(-1).numpy() for gradient in computed])

    actor = property(lambda self: flat(self.net))
    target_actor = property(lambda self: flat(self.target))
    critics = property(lambda self: np.stack([flat(critic) for critic in self.pair]))
    target_critics = property(lambda self: np.stack([flat(critic) for critic in self.target_pair]))


def flat(module: torch.nn.Module) -> np.ndarray:
    return parameters_to_vector(module.parameters()).detach().numpy()


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def times(repeats: int) -> dict[str, dict[str, list[float]]]:
    """CPU seconds of training and of variation, ours and torch's in turn."""
    ours = learner("hopper", 100_000)
    learners: dict[str, Any] = {"ours": ours, "torch": Torch("hopper", ours)}
    solutions = np.stack([ours.greedy] * VARIED)
    computed: dict[str, dict[str, list[float]]] = {
        name: {"training": [], "variation": []} for name in learners
    }
    for made in learners.values():
        made.train(20)
    for _ in range(repeats):
        for name, made in learners.items():
            computed[name]["training"].append(seconds(lambda made=made: made.train(STEPS)))
            varied = seconds(lambda made=made: made.ascend(solutions, **ASCENT))
            computed[name]["variation"].append(varied)
    return computed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=int, metavar="REPEATS")
    repeats = parser.parse_args().time
    torch.set_num_threads(1)
    if repeats:
        print(json.dumps(times(repeats)))
        return
    arrays = {}
    for case in CASES:
        ours = learner(case)
        computed = outputs(Torch(case, ours), solutions_of(ours))
        arrays |= {f"{case}.{name}": values for name, values in computed.items()}
    np.savez_compressed(OUTPUTS, **arrays)
    print(f"{OUTPUTS}: {Path(OUTPUTS).stat().st_size:,} bytes, torch {torch.__version__}")


if __name__ == "__main__":
    main()
