"""Example of your own gymnasium environment: registered here, for `domain.env`.

`qdsweep check grid_breakout:GridBreakout-v0` cannot know your measures, so
`config/domains/grid_breakout.yaml` names it, and `qdsweep check grid_breakout` tests it.
"""

import gymnasium as gym
import numpy as np

SIDE = 10
ROWS = slice(1, 4)  # of bricks


class GridBreakout(gym.Env):
    """Breakout on a grid of 10 x 10 cells: a ball breaks three rows of bricks, 1 point each.

    Actions: stay, left, right. With the probability 0.1 the paddle repeats its last action. An
    observation ``(400,)`` has four grids of zeros and ones: the ball, the paddle, the ball one step
    ago, and the bricks. The ball turns at walls, bricks and the paddle. A ball that is missed costs
    a life, and a full wall of bricks comes back when the last brick is broken.

    Args:
        lives: Number of balls.
    """

    def __init__(self, lives: int = 5) -> None:
        self.lives = lives
        self.observation_space = gym.spaces.Box(0, 1, (4 * SIDE**2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.bricks = np.zeros((SIDE, SIDE), bool)

    def reset(self, *, seed=None, options=None):
        """Starts an episode. All its randomness comes from the seed."""
        super().reset(seed=seed)
        self.left, self.paddle, self.last_action = self.lives, 4, 0
        self.bricks[:] = False
        self.bricks[ROWS] = True
        self._serve()
        return self._observation(), {}

    def step(self, action):
        """Moves the paddle, then the ball."""
        if self.np_random.random() < 0.1:
            action = self.last_action
        self.last_action = int(action)
        self.paddle = min(max(self.paddle + (0, -1, 1)[self.last_action], 0), SIDE - 1)
        reward, is_missed = self._move()
        if is_missed:
            self.left -= 1
            self._serve()
        return self._observation(), reward, self.left == 0, False, {}

    def _serve(self):
        """Puts the ball at the left or the right wall, flying down to the middle."""
        from_right = bool(self.np_random.integers(2))
        self.ball = self.last_ball = (SIDE - 1 if from_right else 0, 3)
        self.speed = (-1 if from_right else 1, 1)
        self.strikes = False  # whether the last step was inside a brick

    def _move(self):
        """Moves the ball by one cell; returns the reward, and whether the paddle missed it."""
        (x, y), (dx, dy) = self.ball, self.speed
        self.last_ball = self.ball
        new_x, new_y = x + dx, y + dy
        reward, strikes = 0.0, False
        if not 0 <= new_x < SIDE:
            new_x, dx = x, -dx
        if new_y < 0:
            new_y, dy = 0, -dy
        elif self.bricks[new_y, new_x]:
            strikes = True
            if not self.strikes:
                reward = 1.0
                self.bricks[new_y, new_x] = False
                new_y, dy = y, -dy
        elif new_y == SIDE - 1:
            if not self.bricks.any():
                self.bricks[ROWS] = True
            if self.paddle not in (x, new_x):
                return reward, True
            if self.paddle != x:
                dx = -dx
            new_y, dy = y, -dy
        self.ball, self.speed, self.strikes = (new_x, new_y), (dx, dy), strikes
        return reward, False

    def _observation(self):
        grids = np.zeros((4, SIDE, SIDE), np.float32)
        grids[0, self.ball[1], self.ball[0]] = 1
        grids[1, SIDE - 1, self.paddle] = 1
        grids[2, self.last_ball[1], self.last_ball[0]] = 1
        grids[3] = self.bricks
        return grids.ravel()


gym.register("GridBreakout-v0", entry_point="grid_breakout:GridBreakout", max_episode_steps=2500)
