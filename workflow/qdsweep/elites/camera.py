"""Takes pictures of an environment while a domain plays in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from qdsweep.domains.gymnasium_task import find_spec, make_env
from qdsweep.errors import BadInput

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH = 360
_FRAMES_A_SECOND = 20
_REMEDIES = {
    "mujoco": (
        "MuJoCo needs OpenGL: install EGL (apt-get install libegl1 libgl1-mesa-dri) or OSMesa "
        "(libosmesa6), and set MUJOCO_GL=egl or MUJOCO_GL=osmesa"
    ),
    "": "install what it is drawn with, such as pygame (pip install 'gymnasium[box2d]')",
}


@dataclass
class Shot:
    """An episode as the camera saw it.

    Attributes:
        longest: The longest animation [s].
        fps: Steps of the environment in a second of its time.
        frames: Pictures, evenly spaced in time, and the last one.
        moments: The step that each was taken after.
        steps: Length of the episode.
    """

    longest: float
    fps: float
    frames: list["Image"] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    steps: int = 0
    _every: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        self._every = max(1, round(self.fps / _FRAMES_A_SECOND))

    @property
    def seconds(self) -> float:
        """How long the animation takes."""
        return max(min(self.steps / self.fps, self.longest), 0.1)

    @property
    def speed(self) -> float:
        """How many times as fast as the environment's time it is."""
        return self.steps / self.fps / self.seconds

    def wants(self, step: int) -> bool:
        """Returns whether a picture is taken after a step."""
        return step % self._every == 0

    def add(self, picture: "Image", step: int) -> None:
        """Adds a picture; when there are too many, every second one goes."""
        self.frames.append(picture)
        self.moments.append(step)
        if len(self.frames) > self.longest * _FRAMES_A_SECOND and len(self.frames) > 2:
            self._every *= 2
            self.frames, self.moments = self.frames[::2], self.moments[::2]


class Camera(gym.Wrapper):
    """A new environment for every episode, as Box2D's carry traces of the one before.

    Raises:
        BadInput: The environment cannot be made, or cannot be rendered.
    """

    env: Any

    def __init__(self, env_id: str, kwargs: dict[str, Any], longest: float) -> None:
        self._id, self._longest = env_id, longest
        spec = find_spec(env_id)
        self._remedy = _REMEDIES["mujoco" if "mujoco" in str(spec.entry_point) else ""]
        self._make = partial(make_env, spec, {**kwargs, "render_mode": "rgb_array"})
        self._shot: Shot | None = None
        super().__init__(self._make())

    @contextmanager
    def filming(self) -> Iterator[Shot]:
        """Films the episode of the block."""
        self._shot = shot = Shot(self._longest, float(self.env.metadata.get("render_fps") or 30))
        try:
            yield shot
            if shot.moments[-1] != shot.steps:
                shot.frames.append(self._picture())
                shot.moments.append(shot.steps)
        finally:
            self._shot = None

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode in a new environment."""
        self.env.close()
        self.env = self._make()
        result = self.env.reset(**kwargs)
        if self._shot is not None:
            self._shot.add(self._picture(), 0)
        return result

    def step(self, action: Any) -> Any:
        """Takes a step, and a picture when it is time."""
        result = self.env.step(action)
        shot = self._shot
        if shot is not None:
            shot.steps += 1
            if shot.wants(shot.steps):
                shot.add(self._picture(), shot.steps)
        return result

    def _picture(self) -> "Image":
        from PIL import Image

        try:
            pixels = np.asarray(self.env.render())
            picture = Image.fromarray(pixels).convert("RGB")
        except Exception as error:  # each library raises errors of its own
            raise BadInput(
                f"domain.env = {self._id!r} cannot be rendered here: {error}. {self._remedy}"
            ) from error
        height = round(picture.height * WIDTH / picture.width)
        return picture.resize((WIDTH, height), Image.Resampling.LANCZOS)
