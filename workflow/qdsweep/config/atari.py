"""Atari games of the Arcade Learning Environment, as data."""

import importlib.util
import json
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from qdsweep.config.base import Model
from qdsweep.config.domain_base import PolicyDomain
from qdsweep.config.episodes import MLP, Linear, Measure

# These have no game for one player.
_FOR_TWO = {"combat", "joust", "maze_craze", "warlords"}


class Convolutional(Model):
    """The network of Mnih et al. (2013): 16 filters 8 x 8, 32 filters 4 x 4, 256 units."""

    title: ClassVar[str] = "a convolutional network"

    type: Literal["convolutional"]


class Atari(PolicyDomain):
    """A game of the Arcade Learning Environment (`make extras`), of which each frame is a step.

    Its measures see the 128 bytes of the console's memory as they are, 0 to 255.
    """

    code = "qdsweep.domains.atari:AtariGame"
    own_libraries = ("ale-py",)
    own_title = "{self.game}"

    type: Literal["atari"]
    game: str = Field(min_length=1, description="its name in the ALE, such as SpaceInvaders")
    observation: Literal["ram", "screen"] = Field(
        default="ram",
        description=(
            "what the policy sees, scaled to 0 to 1: the 128 bytes of memory, or the last four "
            "screens, each 84 x 84 pixels of grey, the brighter of two frames (Mnih et al. 2015)"
        ),
    )
    frame_skip: int = Field(
        default=4, ge=1, le=1000, description="frames that an action lasts [frames]"
    )
    repeat_action_probability: float = Field(
        default=0.25,
        ge=0,
        lt=1,
        description=(
            "sticky actions (Machado et al. 2018): the probability of each frame that the action "
            "before is taken once more, drawn from the evaluation's seed"
        ),
    )
    full_action_space: bool = Field(
        default=False, description="all 18 actions of a joystick, or only those that the game knows"
    )
    max_frames: int = Field(
        default=108_000,
        ge=1,
        le=2**31 - 1,  # the emulator counts them in 32 bits
        description="the longest episode: half an hour of play [frames]",
    )
    episodes: int = Field(
        default=1, ge=1, description="episodes that an evaluation averages [episodes]"
    )
    policy: Annotated[Linear | MLP | Convolutional, Field(discriminator="type")] = Field(
        default=Linear(type="linear"), description="what maps observations to actions"
    )
    measures: list[Measure] = Field(min_length=1, description="the measures, in order")

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: the ALE's, and of what its policies are."""
        network = ("mnih2013playing",) if isinstance(self.policy, Convolutional) else ()
        return ("bellemare2013arcade", "machado2018revisiting", *network, *self.cite)

    @property
    def why_no_experience(self) -> str:
        """Screens are large."""
        if self.observation == "screen":
            return (
                "its policies see screens, and a record of 28,224 numbers a decision is too large "
                "(observation: ram can be learned from)"
            )
        return ""

    @property
    def packages(self) -> tuple[str, ...]:
        """The Arcade Learning Environment."""
        return ("ale_py",)

    @property
    def rom(self) -> str:
        """The name of its file in the ALE, which must be there."""
        return next(rom for rom in _roms() if _title(rom) == self.game)

    @field_validator("game")
    @classmethod
    def _check_game(cls, game: str) -> str:
        known = {_title(rom).lower(): _title(rom) for rom in _roms() if rom not in _FOR_TWO}
        if known and game not in known.values():
            near = get_close_matches(game.lower(), known, n=3, cutoff=0.4) or known
            names = ", ".join(known[word] for word in near)
            raise ValueError(f"the ALE has no game {game!r}; near: {names}")
        return game

    @model_validator(mode="after")
    def _check_parts(self) -> "Atari":
        if isinstance(self.policy, Convolutional) and self.observation == "ram":
            raise ValueError(
                "a convolutional policy sees screens: set observation: screen, or take a policy "
                "of type linear or mlp"
            )
        if any(measure.measure == "contact" for measure in self.measures):
            raise ValueError("the measure contact is one of robots; a game has no such parts")
        return self


@cache
def _roms() -> list[str]:
    """Returns the names of the ALE's files, none where it is absent; nothing is imported."""
    found = importlib.util.find_spec("ale_py")
    if found is None or found.origin is None:
        return []
    names = json.loads(Path(found.origin).with_name("roms").joinpath("md5.json").read_text())
    return [name.partition(".")[0] for name in names]


def _title(rom: str) -> str:
    """Returns the name of gymnasium's id, such as SpaceInvaders for space_invaders."""
    return rom.title().replace("_", "")
