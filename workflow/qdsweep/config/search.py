"""How a sweep draws its configurations, and how it spends its budget on them."""

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from qdsweep.config.model import Model

Sampling = Literal["random", "sobol", "halton", "lhs", "tpe"]
# At smaller shares, small batches are ahead early and lose later (measured in docs/searches.md).
EARLIEST = Fraction(1, 9)


def _part(value: str | float) -> str | float:
    """Refuses a value that is not a share of the whole budget."""
    try:
        if 0 < fraction(value) <= 1:
            return value
    except (ValueError, ZeroDivisionError):
        pass
    raise ValueError(f"{value!r} is not a share of the budget. Write one such as 1/9")


def fraction(value: str | float) -> Fraction:
    """Returns a share of the budget: `1/9` as it is, 0.111 by its digits."""
    return Fraction(str(value).replace(" ", ""))


Share = Annotated[str | float, AfterValidator(_part)]


class Halving(Model):
    """Successive halving: many configurations get a small budget, the best ones a larger one."""

    first: Share | None = Field(
        default=None,
        description=(
            "share of the budget for each configuration of the first rung. Each later rung has "
            "`eta` times as much, the last one the whole budget; null: 1/9, unless there are "
            "`rungs` [fraction]"
        ),
    )
    rungs: list[Share] | None = Field(
        default=None,
        min_length=2,
        description="the share of each rung instead of `first`, such as [1/3, 2/3, 1] [fraction]",
    )
    eta: int = Field(
        default=3,
        ge=2,
        le=100,
        description="reduction factor: one in `eta` configurations is promoted to the next rung",
    )
    seeds: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        description="number of swept seeds of each rung; null: it grows up to all seeds",
    )
    brackets: Literal["all"] | Annotated[int, Field(ge=1)] = Field(
        default=1,
        description=(
            "number of Hyperband brackets, each a halving that starts one rung later; all: one "
            "for each rung"
        ),
    )
    metric: str | None = Field(
        default=None,
        min_length=1,
        description="the recorded metric that decides; null: that of `rank`",
    )
    block: Literal["all"] | Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description=(
            "number of configurations that are decided together. all: the whole rung. A smaller "
            "block keeps earlier decisions when samples are added; null: `eta` for drawn "
            "configurations, all for a grid"
        ),
    )

    @property
    def shares(self) -> list[Fraction]:
        """The share of the whole budget that each rung gives a configuration."""
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
            raise ValueError("halving.first = 1: nothing would be halved. Write less, such as 1/9")
        if self.num_brackets > len(shares):
            raise ValueError(f"halving.brackets = {self.brackets}: there are {len(shares)} rungs")
        if self.seeds is not None:
            if len(self.seeds) != len(shares):
                raise ValueError(
                    f"halving.seeds = {self.seeds}: give a number for each of the {len(shares)} "
                    f"rungs ({', '.join(map(str, shares))})"
                )
            if self.seeds != sorted(self.seeds):
                raise ValueError(
                    f"halving.seeds = {self.seeds}: a later rung needs at least as many seeds"
                )
        return self


class Pbt(Model):
    """Population-based training: the worst take the state of the best, with changed values."""

    population: int = Field(ge=2, le=10_000, description="number of configurations in a generation")
    generations: int = Field(ge=2, le=10_000, description="number of equal parts of the budget")
    exploit: float = Field(
        default=0.25, gt=0, le=0.5, description="share of the worst that are replaced [fraction]"
    )
    factors: list[Annotated[float, Field(gt=0)]] = Field(
        default=[0.8, 1.25],
        min_length=1,
        description="factors for a number; one of them is chosen at random",
    )
    resample: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="share of values that are drawn afresh instead [fraction]",
    )
    metric: str | None = Field(
        default=None,
        min_length=1,
        description="the recorded metric that decides; null: that of `rank`",
    )


class Search(Model):
    """The values of `:::~` sources, and the way the budget is spent on configurations."""

    samples: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "number of drawn configurations; null: the number that brackets or a population need, "
            "or a grid"
        ),
    )
    sampling: Sampling = Field(
        default="random",
        description=(
            "random: independent. sobol, halton: evenly spread; more samples keep the first ones. "
            "lhs: a Latin hypercube, whose samples change with their number. tpe: near the good "
            "values of earlier batches (Optuna; `make extras`)"
        ),
    )
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="the seed of the draws, not of the runs"
    )
    batches: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="number of TPE batches; with brackets: number of rounds",
    )
    halving: Halving | None = Field(
        default=None,
        description="successive halving or Hyperband; null: every run has the whole budget",
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
                "search.pbt cannot be combined with samples, halving and tpe. Leave them out; "
                "`sampling` draws its population at random or evenly"
            )
        if self.has_brackets and self.samples is not None:
            raise ValueError(
                "search.samples: brackets compute the number of configurations themselves. Leave "
                "it out, and set batches for more rounds"
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
                f"search.samples = {self.samples}: a whole number of configurations in each of the "
                f"{self.batches} batches is needed; write {(size + 1) * self.batches}, for example"
            )
        if self.sampling == "lhs" and (self.pbt or self.has_brackets):
            raise ValueError("search.sampling = lhs: draw with sobol, halton or random here")
        return self
