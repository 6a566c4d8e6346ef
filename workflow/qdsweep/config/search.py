"""How a sweep draws its settings, and how it spends its budget on them."""

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from qdsweep.config.base import Model

Sampling = Literal["random", "sobol", "halton", "lhs", "tpe"]
# At smaller shares, small batches lead that lose in the end (measured in docs/searches.md).
EARLIEST = Fraction(1, 9)


def _part(value: str | float) -> str | float:
    """Refuses a value that is not a share of the whole budget."""
    try:
        if 0 < fraction(value) <= 1:
            return value
    except (ValueError, ZeroDivisionError):
        pass
    raise ValueError(f"{value!r} is no share of the budget: write one such as 1/9")


def fraction(value: str | float) -> Fraction:
    """Returns a share of the budget: `1/9` as it is, 0.111 by its digits."""
    return Fraction(str(value).replace(" ", ""))


Share = Annotated[str | float, AfterValidator(_part)]


class Halving(Model):
    """Successive halving: many settings get little, the best of them more, the last ones all."""

    first: Share | None = Field(
        default=None,
        description=(
            "share of the budget that the first rung gives each setting; each later one gives "
            "`eta` times as much, the last one all; null: 1/9, unless there are `rungs` [fraction]"
        ),
    )
    rungs: list[Share] | None = Field(
        default=None,
        min_length=2,
        description="the share of each rung instead of `first`, such as [1/3, 2/3, 1] [fraction]",
    )
    eta: int = Field(
        default=3, ge=2, le=100, description="one setting of so many goes on to the next rung"
    )
    seeds: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        description="how many of the swept seeds each rung has; null: they grow to all of them",
    )
    brackets: Literal["all"] | Annotated[int, Field(ge=1)] = Field(
        default=1,
        description=(
            "all: Hyperband, a halving from each of the rungs on, side by side; n: those from the "
            "n first rungs on"
        ),
    )
    metric: str | None = Field(
        default=None,
        min_length=1,
        description="what decides, a recorded metric; null: that of `rank`",
    )
    block: Literal["all"] | Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description=(
            "how many settings go on at a time: all waits for the whole rung; fewer keep what was "
            "decided when samples are added; null: `eta` of drawn settings, all of a grid"
        ),
    )

    @property
    def shares(self) -> list[Fraction]:
        """The share of the whole budget that each rung gives a setting."""
        if self.rungs is not None:
            return [fraction(share) for share in self.rungs]
        shares, share = [], EARLIEST if self.first is None else fraction(self.first)
        while share < 1:
            shares.append(share)
            share *= self.eta
        return [*shares, Fraction(1)]

    @property
    def num_brackets(self) -> int:
        """Number of brackets."""
        return len(self.shares) if self.brackets == "all" else self.brackets

    @model_validator(mode="after")
    def _check(self) -> "Halving":
        shares = self.shares
        if self.rungs is not None and self.first is not None:
            raise ValueError("give halving.first or halving.rungs, not both")
        if shares[-1] != 1 or any(a >= b for a, b in pairwise(shares)):
            raise ValueError(f"halving.rungs = {self.rungs}: they must rise, and end with 1")
        if len(shares) < 2:
            raise ValueError("halving.first = 1: nothing would be halved; write less, such as 1/9")
        if self.num_brackets > len(shares):
            raise ValueError(f"halving.brackets = {self.brackets}: there are {len(shares)} rungs")
        if self.seeds is not None:
            if len(self.seeds) != len(shares):
                raise ValueError(
                    f"halving.seeds = {self.seeds}: give a number for each of the {len(shares)} "
                    f"rungs ({', '.join(map(str, shares))})"
                )
            if self.seeds != sorted(self.seeds):
                raise ValueError(f"halving.seeds = {self.seeds}: a later rung has as many or more")
        return self


class Pbt(Model):
    """Population-based training: the worst take the state and changed settings of the best."""

    population: int = Field(ge=2, le=10_000, description="settings at a time")
    generations: int = Field(ge=2, le=10_000, description="equal parts of the budget")
    exploit: float = Field(
        default=0.25, gt=0, le=0.5, description="share of the worst that are replaced [fraction]"
    )
    factors: list[Annotated[float, Field(gt=0)]] = Field(
        default=[0.8, 1.25], min_length=1, description="what changes a number, one at random"
    )
    resample: float = Field(
        default=0.25, ge=0, le=1, description="share of values that are drawn anew [fraction]"
    )
    metric: str | None = Field(
        default=None,
        min_length=1,
        description="what decides, a recorded metric; null: that of `rank`",
    )


class Search(Model):
    """The values of `:::~` sources, and the way the budget is spent on the sweep's settings."""

    samples: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "how many settings are drawn; null: what brackets or a population need, or of a grid"
        ),
    )
    sampling: Sampling = Field(
        default="random",
        description=(
            "random: independent; sobol, halton: evenly spread, and more samples keep the first "
            "ones; lhs: a Latin hypercube, whose samples change with their number; tpe: where "
            "earlier batches were good (Optuna; `make extras`)"
        ),
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="of the draws, not of the runs")
    batches: int = Field(
        default=1, ge=1, le=1000, description="how often tpe asks; with brackets: how many rounds"
    )
    halving: Halving | None = Field(
        default=None, description="successive halving or Hyperband; null: every run is whole"
    )
    pbt: Pbt | None = Field(default=None, description="population-based training; null: none")

    @property
    def is_staged(self) -> bool:
        """Whether results decide what is computed next; else all runs are known beforehand."""
        return bool(self.halving or self.pbt or self.sampling == "tpe")

    @property
    def has_brackets(self) -> bool:
        """Whether it runs several halvings side by side, as Hyperband does."""
        return self.halving is not None and self.halving.num_brackets > 1

    @property
    def needs_different(self) -> bool:
        """Whether its number of candidates is fixed, and all of them must differ."""
        return bool(self.pbt or self.sampling == "tpe" or self.has_brackets)

    @property
    def metric(self) -> str | None:
        """The metric that decides; None: that of `rank`."""
        method = self.halving or self.pbt
        return method.metric if method else None

    @property
    def plain(self) -> dict[str, Any]:
        """Its keys as plain data, without those of later releases at their defaults."""
        later, fields = ("batches", "halving", "pbt"), type(self).model_fields
        unset = {key for key in later if getattr(self, key) == fields[key].default}
        return self.model_dump(mode="json", exclude=unset, exclude_none=True)

    @model_validator(mode="after")
    def _check(self) -> "Search":
        if self.pbt and (self.halving or self.sampling == "tpe" or self.samples is not None):
            raise ValueError(
                "search.pbt stands alone: its population is drawn at random or evenly (sampling), "
                "so leave out samples, halving and tpe"
            )
        if self.has_brackets and self.samples is not None:
            raise ValueError(
                "search.samples: brackets say themselves how many settings they need; leave it "
                "out, and write batches for more rounds of them"
            )
        if self.batches > 1 and not self.has_brackets and self.sampling != "tpe":
            raise ValueError("search.batches: only tpe asks in batches, and brackets have rounds")
        if self.sampling == "tpe" and self.batches == 1:
            raise ValueError(
                "search.sampling = tpe: the first batch is random, so write batches: 2 or more"
            )
        size, rest = divmod(self.samples or 0, self.batches)
        if self.sampling == "tpe" and not self.has_brackets and rest:
            raise ValueError(
                f"search.samples = {self.samples}: a whole number of settings in each of the "
                f"{self.batches} batches is needed; write {(size + 1) * self.batches}, for example"
            )
        if self.sampling == "lhs" and (self.pbt or self.has_brackets):
            raise ValueError("search.sampling = lhs: draw with sobol, halton or random here")
        return self
