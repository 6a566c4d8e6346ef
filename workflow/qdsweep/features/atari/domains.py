"""Atari games of the Arcade Learning Environment, as data."""

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from qdsweep.config.domain_keys import MLP, Linear, Measure, PolicyDomain
from qdsweep.config.model import Model

# Network -> its paper.
_NETWORKS = {"mnih2013": "mnih2013playing", "mnih2015": "mnih2015human"}
# These have no game for one player.
_FOR_TWO = {"combat", "joust", "maze_craze", "warlords"}


class Convolutional(Model):
    """A convolutional network of screens, with biases and ReLU."""

    title: ClassVar[str] = "a convolutional network"

    type: Literal["convolutional"]
    network: Literal["mnih2013", "mnih2015"] = Field(
        default="mnih2013",
        description=(
            "mnih2013: 16 filters 8 x 8, 32 filters 4 x 4, 256 units (Mnih et al. 2013). mnih2015: "
            "32 filters 8 x 8, 64 filters 4 x 4, 64 filters 3 x 3, 512 units (Mnih et al. 2015; "
            "stable-baselines3's NatureCNN)"
        ),
    )


class Atari(PolicyDomain):
    """A game of the Arcade Learning Environment (`make extras`), of which each frame is a step.

    Its measures use the 128 bytes of the console's memory without scaling, 0 to 255.
    """

    code = "qdsweep.features.atari.games:AtariGame"
    own_libraries = ("ale-py",)
    own_title = "{self.game}"

    type: Literal["atari"]
    game: str = Field(min_length=1, description="its name in the ALE, such as SpaceInvaders")
    observation: Literal["ram", "screen"] = Field(
        default="ram",
        description=(
            "the observation of the policy, scaled to 0 to 1: the 128 bytes of memory, or the "
            "last four screens of 84 x 84 grey pixels, the brighter of two frames (Mnih et al. "
            "2015)"
        ),
    )
    pixels: Literal["exact", "bytes"] = Field(
        default="exact",
        description=(
            "a pixel of a screen: the exact mean of its area, or this mean rounded to a byte. "
            "Learners need bytes, which they record once for each screen"
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
            "sticky actions (Machado et al. 2018): probability, for each frame, that the previous "
            "action is repeated; drawn from the evaluation's seed"
        ),
    )
    full_action_space: bool = Field(
        default=False,
        description="true: all 18 actions of a joystick; false: only the actions of the game",
    )
    max_frames: int = Field(
        default=108_000,
        ge=1,
        le=2**31 - 1,  # the emulator counts them in 32 bits
        description="maximum length of an episode, by default half an hour of play [frames]",
    )
    episodes: int = Field(
        default=1, ge=1, description="episodes that an evaluation averages [episodes]"
    )
    policy: Annotated[Linear | MLP | Convolutional, Field(discriminator="type")] = Field(
        default=Linear(type="linear"), description="the policy, which maps observations to actions"
    )
    measures: list[Measure] = Field(min_length=1, description="the measures, in order")

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: the ALE's, and those of its policies."""
        policy = self.policy
        network = (_NETWORKS[policy.network],) if isinstance(policy, Convolutional) else ()
        return ("bellemare2013arcade", "machado2018revisiting", *network, *self.cite)

    @property
    def why_no_experience(self) -> str:
        """Screens are recorded as bytes, for a convolutional network."""
        missing = []
        if not isinstance(self.policy, Convolutional):
            missing.append("policy: {type: convolutional}")
        if self.pixels == "exact":
            missing.append("pixels: bytes")
        if self.observation == "ram" or not missing:
            return ""
        return (
            "its screens are learned from as bytes, by a convolutional network. "
            f"Set {' and '.join(missing)}, or observation: ram"
        )

    @property
    def observation_bytes(self) -> int:
        """Bytes of a recorded screen."""
        return 84 * 84 if self.observation == "screen" else 0

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
            from difflib import get_close_matches

            near = get_close_matches(game.lower(), known, n=3, cutoff=0.4) or known
            names = ", ".join(known[word] for word in near)
            raise ValueError(f"the ALE has no game {game!r}; near: {names}")
        return game

    @model_validator(mode="after")
    def _check_parts(self) -> "Atari":
        if isinstance(self.policy, Convolutional) and self.observation == "ram":
            raise ValueError(
                "a convolutional policy needs screens. Set observation: screen, or use a policy "
                "of type linear or mlp"
            )
        if self.pixels == "bytes" and self.observation == "ram":
            raise ValueError("pixels = bytes: memory has none. Set observation: screen")
        if any(measure.measure == "contact" for measure in self.measures):
            raise ValueError("the measure contact is for robots only: a game has no body parts")
        return self


@cache
def _roms() -> list[str]:
    """Returns the names of the ALE's files, none where it is absent; nothing is imported."""
    spec = importlib.util.find_spec("ale_py")
    if spec is None or spec.origin is None:
        return []
    names = json.loads(Path(spec.origin).with_name("roms").joinpath("md5.json").read_text())
    return [name.partition(".")[0] for name in names]


def _title(rom: str) -> str:
    """Returns the name of gymnasium's id, such as SpaceInvaders for space_invaders."""
    return rom.title().replace("_", "")


DOMAINS = (Atari,)
