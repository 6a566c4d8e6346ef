"""The discount model of DMS: a network that predicts a discount at each point of measure space."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from ribs.discount_models import MLP, DiscountModelManager
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from qdsweep.algorithms.pytorch import arrays, is_finite, tensors
from qdsweep.algorithms.pytorch.shares import add_gradients, cut_shares
from qdsweep.domains.base import Floats
from qdsweep.errors import QdsweepError


class DiscountModel(DiscountModelManager):
    """pyribs' manager of an MLP, with its own generator and quicker training of the same bits.

    Measures are normalised to [-1, 1] and discounts to [0, 1], as in pyribs' example. A reload file
    has arrays in place of torch's tensors.

    Args:
        settings: `model_hidden`, `model_lr`, `learner_shares` and the `train_*` keys of the
            archive.
        ranges: (lower, upper) of each measure.
        objective_range: (lowest, best) objective of the domain.
        seed: The seed of the initial weights and of training.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        ranges: list[tuple[float, float]],
        objective_range: tuple[float, float],
        seed: np.random.SeedSequence,
    ) -> None:
        generator = torch.Generator().manual_seed(int(seed.generate_state(1)[0]))
        self._generator = generator.get_state().numpy()
        self._arguments = settings, ranges, objective_range
        with self._drawing():
            self._make(*self._arguments)

    def _make(
        self,
        settings: Mapping[str, Any],
        ranges: list[tuple[float, float]],
        objective_range: tuple[float, float],
    ) -> None:
        layers = [*pairwise((len(ranges), *settings["model_hidden"], 1))]
        model = MLP(layers, torch.nn.ReLU)
        lows, highs = zip(*ranges, strict=True)
        super().__init__(
            model,
            torch.optim.Adam(model.parameters(), lr=settings["model_lr"], fused=True),
            torch.device("cpu"),
            **{key: value for key, value in settings.items() if key.startswith("train_")},
            normalize_measures="negative_one_one",
            measures_low=lows,
            measures_high=highs,
            normalize_discount="zero_one",
            discount_low=objective_range[0],
            discount_high=objective_range[1],
        )

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Sets torch's global generator to this model's in a `with` block, and restores it."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(torch.from_numpy(self._generator))
            yield
            self._generator = torch.get_rng_state().numpy()

    def training_loop(self, measures: ArrayLike, targets: ArrayLike) -> list[float]:
        """Trains the model; pyribs' loop collects each minibatch row by row.

        Args:
            measures: ``(n, m)`` points of the measure space.
            targets: ``(n,)`` their discounts [objective units].

        Returns:
            The mean loss of each epoch.

        Raises:
            QdsweepError: Training has diverged.
        """
        data = TensorDataset(
            self._normalize(
                measures, self.normalize_measures, self.measures_low, self.measures_high
            ),
            self._normalize(
                targets, self.normalize_discount, self.discount_low, self.discount_high
            ),
        )
        sampler = BatchSampler(RandomSampler(data), self.train_batch_size, drop_last=False)
        batches = DataLoader(data, batch_size=None, sampler=sampler)
        losses: list[float] = []
        # Reload files of earlier releases lack the key.
        shares = self._arguments[0].get("learner_shares", 1)
        with self._drawing():
            while len(losses) < self.train_epochs:
                total = 0.0
                for points, discounts in batches:
                    self.optimizer.zero_grad()
                    loss = partial(self._loss, points, discounts)
                    parts = [partial(loss, rows) for rows in cut_shares(len(points), shares)]
                    total += sum(add_gradients(self.model.parameters(), parts)) * len(points)
                    self.optimizer.step()
                losses.append(total / len(data))
                if losses[-1] <= self.train_cutoff_loss:
                    break
        if not is_finite(self.optimizer):
            raise QdsweepError(
                "the discount model has diverged: means of its squared gradients are infinite or "
                "NaN. Usual causes: objectives far outside of objective_range, or a high model_lr"
            )
        return losses

    def _loss(self, points: Any, discounts: Any, rows: slice) -> tuple[Any, float]:
        """Returns the part of some rows in the mean squared error of a minibatch, also as float."""
        predicted = self.model(points[rows]).squeeze(dim=1)
        loss = functional.mse_loss(predicted, discounts[rows], reduction="sum") / len(points)
        return loss, loss.item()

    def inference(self, measures: ArrayLike, batch_size: int | None = None) -> Floats:
        """Returns the discounts ``(n,)`` of ``(n, m)`` measures, as pyribs' class."""
        with self._drawing():
            discounts: Floats = super().inference(measures, batch_size)
        return discounts

    def __getstate__(self) -> dict[str, Any]:
        """Replaces the network and its optimiser with arrays. The arguments determine the rest."""
        states = arrays([self.model.state_dict(), self.optimizer.state_dict()])
        return {"_arguments": self._arguments, "_generator": self._generator, "states": states}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuilds the network and loads the arrays."""
        self._arguments, self._generator = state["_arguments"], state["_generator"]
        with torch.random.fork_rng(devices=[]):
            self._make(*self._arguments)
        weights, optimizer = tensors(state["states"])
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict(optimizer)
