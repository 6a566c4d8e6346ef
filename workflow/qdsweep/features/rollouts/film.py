"""Takes pictures of an episode while a domain plays it, and writes them as an animated GIF."""

import io
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from qdsweep.domains.environments import makers
from qdsweep.errors import BadInput
from qdsweep.files import atomic

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont


_WIDTH = 360
_FRAMES_A_SECOND = 20
_REMEDIES = {
    "mujoco": (
        "MuJoCo needs OpenGL: install EGL (apt-get install libegl1 libgl1-mesa-dri) or OSMesa "
        "(libosmesa6), and set MUJOCO_GL=egl or MUJOCO_GL=osmesa"
    ),
    "": "install the library that draws it, such as pygame (pip install pygame-ce)",
}

# Called with each picture, the step after which it was taken, and the steps per second.
OnPicture = Callable[["Image", int, float], None]
MAX_BYTES = 1_000_000
_COLORS = 192
_SHORTEST = 0.02  # [s]; browsers show shorter frames for a tenth of a second

_MARGIN, _TITLE, _TEXT = 6, 12, 10


@contextmanager
def filming(
    longest: float, on_picture: "OnPicture | None" = None, *, by_user: bool = False
) -> Iterator["Shot"]:
    """Films the first episode in the block that an environment of a domain plays.

    Args:
        longest: The longest animation [s].
        on_picture: See `Shot`.
        by_user: Whether the domain is a class of the user's, which may call gymnasium.make.

    Raises:
        BadInput: The environment cannot be rendered.
    """
    shot = Shot(longest, on_picture)
    maker = partial(_make_filmed, shot)
    makers.append(maker)
    if by_user:  # gymnasium has no hook for the calls of a user's class
        gym.make = _make
    try:
        yield shot
        shot.end()
    finally:
        if by_user:
            gym.make = makers[0]
        makers.remove(maker)


def _make(*arguments: Any, **keywords: Any) -> gym.Env:
    """Makes an environment; modules that imported it as gymnasium.make may keep it."""
    return makers[-1](*arguments, **keywords)


def _make_filmed(shot: "Shot", *arguments: Any, **keywords: Any) -> gym.Env:
    """Makes an environment like gymnasium.make, with a camera."""
    try:  # MuJoCo looks for OpenGL when it is imported
        env = makers[0](*arguments, **{**keywords, "render_mode": "rgb_array"})
    except Exception as error:
        name = arguments[0] if arguments else keywords.get("id")
        spec = gym.envs.registry.get(name, name) if isinstance(name, str) else name
        raise _refusal(spec, error) from error
    return Camera(env, shot)


def _refusal(spec: Any, error: Exception) -> BadInput:
    """Returns the error for an environment that cannot be rendered, given its specification."""
    entry = str(getattr(spec, "entry_point", ""))
    remedy = _REMEDIES["mujoco" if "mujoco" in entry else ""]
    name = getattr(spec, "id", str(spec))
    return BadInput(f"the environment {name!r} cannot be rendered here: {error}. {remedy}")


@dataclass
class Shot:
    """A filmed episode.

    Attributes:
        longest: The longest animation [s].
        on_picture: Gets each picture when it is taken; the shot then keeps none.
        fps: Steps of the environment per second of its time.
        frames: Pictures at equal intervals, and the last one.
        moments: The step after which each picture was taken.
        steps: Length of the episode [steps].
    """

    longest: float
    on_picture: OnPicture | None = None
    fps: float = _FRAMES_A_SECOND
    frames: list["Image"] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    steps: int = 0
    _every: int = field(default=1, init=False)
    _camera: "Camera | None" = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._space()

    def _space(self) -> None:
        self._every = max(1, round(self.fps / _FRAMES_A_SECOND))

    @property
    def seconds(self) -> float:
        """The duration of the animation [s]."""
        return max(min(self.steps / self.fps, self.longest), 0.1)

    @property
    def speed(self) -> float:
        """The speed of the animation, as a multiple of the environment's time."""
        return self.steps / self.fps / self.seconds

    def wants(self, step: int) -> bool:
        """Returns whether a picture is taken after a step."""
        return step % self._every == 0

    def add(self, picture: "Image", step: int) -> None:
        """Adds a picture. If there are too many, every second picture is removed."""
        self._keep(picture, step)
        if len(self.moments) > self.longest * _FRAMES_A_SECOND and len(self.moments) > 2:
            self._every *= 2
            self.frames, self.moments = self.frames[::2], self.moments[::2]

    def _keep(self, picture: "Image", step: int) -> None:
        self.moments.append(step)
        if self.on_picture is None:
            self.frames.append(picture)
        else:
            self.on_picture(picture, step, self.fps)

    def add_all(self, pictures: Iterable[Any]) -> None:
        """Adds finished pictures, twenty per second: arrays ``(h, w, 3)`` uint8, or Pillow's."""
        last = None
        for self.steps, picture in enumerate(pictures):
            last = _scaled(picture)
            if self.wants(self.steps):
                self.add(last, self.steps)
        if last is not None and self.moments[-1] != self.steps:
            self._keep(last, self.steps)

    def count(self, steps: int) -> None:
        """Sets the length of the episode, as one picture may represent many steps.

        Args:
            steps: Length of the episode [steps of the environment].
        """
        of_each = -(-steps // max(self.steps, 1))
        self.fps *= steps / max(self.steps, 1)
        self.moments = [min(of_each * moment, steps) for moment in self.moments]
        self.steps = steps

    def begin(self, camera: "Camera") -> None:
        """Starts with the first episode for which an environment with a camera was reset."""
        self.end()
        if not self._is_over:
            self.fps = float(camera.env.metadata.get("render_fps") or 30)
            self.frames, self.moments, self._camera = [], [], camera
            self._space()
            self.add(camera.picture(), 0)

    def step(self, camera: "Camera") -> None:
        """Counts a step, and takes a picture if one is due."""
        if camera is self._camera and not self._is_over:
            self.steps += 1
            if self.wants(self.steps):
                self.add(camera.picture(), self.steps)

    def end(self, camera: "Camera | None" = None) -> None:
        """Takes the last picture of the episode, if one was played (with this camera)."""
        if self._camera is None or self._is_over or self.steps == 0:
            return
        if camera in (None, self._camera):
            if self.moments[-1] != self.steps:
                self._keep(self._camera.picture(), self.steps)
            self._is_over = True


class Camera(gym.Wrapper):
    """An environment whose episode is filmed.

    Args:
        env: The environment, which renders arrays.
        shot: The shot that receives its pictures.
    """

    env: Any

    def __init__(self, env: gym.Env, shot: Shot) -> None:
        super().__init__(env)
        self._shot = shot

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode."""
        self._shot.end(self)
        result = self.env.reset(**kwargs)
        self._shot.begin(self)
        return result

    def step(self, action: Any) -> Any:
        """Takes a step."""
        result = self.env.step(action)
        self._shot.step(self)
        return result

    def close(self) -> None:
        """Takes the last picture, and closes the environment."""
        self._shot.end(self)
        super().close()

    def picture(self) -> "Image":
        """Returns a picture of the current state.

        Raises:
            BadInput: The environment cannot be drawn on this machine.
        """
        try:
            return _scaled(self.env.render())
        except Exception as error:  # each library raises its own errors
            raise _refusal(self.env.spec or str(self.env), error) from error


def _scaled(pixels: Any) -> "Image":
    from PIL import Image

    picture = Image.fromarray(np.asarray(pixels)).convert("RGB")
    height = round(picture.height * _WIDTH / picture.width)
    return picture.resize((_WIDTH, height), Image.Resampling.LANCZOS)


def write_gif(path: Path, frames: list["Image"], seconds: float, hold: float = 1.5) -> None:
    """Writes an endless animation of at most one megabyte.

    While it is larger, every second frame is removed.

    Args:
        path: The file to write.
        frames: RGB pictures of one size, at least one.
        seconds: Duration of all pictures [s].
        hold: Additional duration of the last picture [s].
    """
    frames = _with_one_palette(frames)
    data = _encoded(frames, seconds, hold)
    while len(data) > MAX_BYTES and len(frames) > 2:
        frames = frames[::-2][::-1]  # keeps the last frame
        data = _encoded(frames, seconds, hold)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(data)


def with_text(pictures: list["Image"], title: str, texts: list[list[str]]) -> list["Image"]:
    """Returns pictures of one size, each with its text above it.

    Args:
        pictures: RGB pictures of one size.
        title: The first text above all pictures, in bold.
        texts: The lines of each picture, which are wrapped.
    """
    from PIL import Image, ImageDraw

    width, height = pictures[0].size
    bold, plain = _font("DejaVuSans-Bold.ttf", _TITLE), _font("DejaVuSans.ttf", _TEXT)
    title = _wrapped(title, bold, width)
    bodies = ["\n".join(_wrapped(line, plain, width) for line in lines) for lines in texts]
    pen = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    top = _MARGIN + int(pen.multiline_textbbox((0, 0), title, font=bold)[3]) + 5
    # All text bands have the height of the highest one, so the picture does not jump.
    band = top + max(int(pen.multiline_textbbox((0, 0), b, font=plain)[3]) for b in bodies)
    frames = []
    for picture, body in zip(pictures, bodies, strict=True):
        frame = Image.new("RGB", (width, height + band + _MARGIN), "white")
        pen = ImageDraw.Draw(frame)
        pen.multiline_text((_MARGIN, _MARGIN), title, "black", bold)
        pen.multiline_text((_MARGIN, top), body, "#404040", plain)
        frame.paste(picture, (0, band + _MARGIN))
        frames.append(frame)
    return frames


def _encoded(frames: list["Image"], seconds: float, hold: float) -> bytes:
    duration = max(seconds / len(frames), _SHORTEST)
    times = [round(1000 * duration)] * (len(frames) - 1) + [round(1000 * (duration + hold))]
    buffer = io.BytesIO()
    first, *others = frames
    animated = {"save_all": True, "append_images": others, "duration": times, "loop": 0}
    first.save(buffer, "GIF", optimize=True, **animated)
    return buffer.getvalue()


def _with_one_palette(frames: list["Image"]) -> list["Image"]:
    """Returns the frames in the colours of the first, the middle and the last."""
    from PIL import Image

    chosen = [frames[0], frames[len(frames) // 2], frames[-1]]
    palette = Image.fromarray(np.vstack(chosen)).quantize(_COLORS)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def _font(name: str, size: int) -> "FreeTypeFont":
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts/ttf", name)), size)


def _wrapped(text: str, font: "FreeTypeFont", width: int) -> str:
    letter = font.getlength(text) / max(len(text), 1)
    return textwrap.fill(text, int(0.95 * (width - 2 * _MARGIN) / max(letter, 1.0)))
