"""Gymnasium: a gym as an `Env` of texts, and a text environment of Gymnasium as a gym.

Tested with gymnasium 1.4. `make_env` is the way in; `register` makes the gyms known to
`gymnasium.make`; `wrap` is the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mimesim.envs.load import REGISTRY
from mimesim.errors import EnvError, MissingExtraError
from mimesim.integrations.foreign import Bounds, ForeignKind, Said
from mimesim.integrations.sessions import SyncGym, open_gym
from mimesim.users.calling import call

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("Gymnasium", "integrations") from error

_LENGTH = 100_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz 0123456789"
_SHOWN = 40


class AnyText(gymnasium.spaces.Space[str]):
    """All texts, whatever their letters; samples are short and plain."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(dtype=str, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a text."""
        letters = self.np_random.choice(list(_LETTERS), int(self.np_random.integers(1, _SHOWN)))
        return "".join(letters)

    def contains(self, x: Any) -> bool:
        """Tell whether `x` is a text of bearable length."""
        return isinstance(x, str) and len(x) <= _LENGTH

    @property
    def is_np_flattenable(self) -> bool:
        """Texts have no fixed length."""
        return False

    def __eq__(self, other: object) -> bool:
        """Tell whether `other` is the same space."""
        return isinstance(other, AnyText)

    __hash__ = None  # type: ignore[assignment]


class TextEnv(gymnasium.Env[str, str]):
    """A gym of ours as a Gymnasium environment: a text is an action, a text comes back.

    The first observation holds what the agent must know and what is said first; `info` has both
    apart. Which task is played is drawn by `reset`, or said by `options={"task": number}`. An
    episode whose user, judge or network failed is raised as `EpisodeError`, never scored.

    Args:
        gym: door name.
        settings: see `sessions.open_gym`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, gym: str, render_mode: str | None = None, **settings: Any) -> None:
        self.action_space = AnyText()
        self.observation_space = AnyText()
        self.render_mode = render_mode
        self._gym = SyncGym(open_gym(gym, "gymnasium", settings))
        low, high = self._gym.gym.spec.step_bounds
        self.reward_range = (low, high)
        self._shown = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode; equal seeds give equal ones."""
        super().reset(seed=seed)
        tasks, drawn = len(self._gym.gym.tasks), int(self.np_random.integers(2**31))
        number = (options or {}).get("task", drawn % tasks)
        opened = self._gym.reset(int(number), drawn // tasks)
        self._shown = f"{opened.system}\n\n{opened.text}".strip()
        return self._shown, {"task": opened.task_id, "system": opened.system, "text": opened.text}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out what the agent wrote."""
        heard = self._gym.step(action)
        self._shown = heard.text
        info: dict[str, Any] = {"valid": heard.valid}
        if heard.done:
            info |= {"is_success": bool(heard.success), "reason": heard.reason}
        return heard.text, float(heard.reward), heard.terminated, heard.truncated, info

    def render(self) -> str | None:
        """Return what was shown last."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Close user and judge."""
        self._gym.close()


def make_env(gym: str, **settings: Any) -> TextEnv:
    """Make a gym a Gymnasium environment; see `TextEnv`."""
    return TextEnv(gym, **settings)


def register(namespace: str = "mimesim") -> list[str]:
    """Make all gyms known to `gymnasium.make` as `<namespace>/<gym>-v0` and return these ids."""
    found = []
    for name in REGISTRY.names():
        id_ = f"{namespace}/{name}-v0"
        if id_ not in gymnasium.registry:
            gymnasium.register(
                id_,
                entry_point="mimesim.integrations.gymnasium:TextEnv",
                kwargs={"gym": name},
                # the gyms keep this order themselves; our actions are texts, not arrays
                disable_env_checker=True,
            )
        found.append(id_)
    return found


def wrap(
    name: str,
    make: str | Callable[[], Any],
    *,
    bounds: Bounds,
    system: str = "",
    observe: Callable[[Any], str] = str,
    act: Callable[[str], Any] = str,
) -> ForeignKind:
    """Make a text environment of Gymnasium a gym; keep the result where a door name can point.

    Args:
        name: of the gym: the path that leads to this object, `package.module:ATTRIBUTE`.
        make: id for `gymnasium.make`, or what returns an environment (each episode has its own).
        bounds: of steps and rewards, which Gymnasium does not know.
        system: what the agent is told; "" = that an environment reads what it writes.
        observe: observation -> text.
        act: text -> action; a ValueError, and what the action space does not hold, is invalid.
    """

    def world(task: Mapping[str, Any]) -> GymnasiumWorld:
        env = gymnasium.make(make) if isinstance(make, str) else make()
        return GymnasiumWorld(env, int(task["seed"]), observe, act)

    return ForeignKind(name, world, bounds, system=system)


class GymnasiumWorld:
    """One episode of a Gymnasium environment; every call runs in a thread, for it may block."""

    def __init__(
        self, env: Any, seed: int, observe: Callable[[Any], str], act: Callable[[str], Any]
    ) -> None:
        self._env = env
        self._seed = seed
        self._observe = observe
        self._act = act

    async def start(self) -> str:
        """Reset and return the first text."""
        observation, _ = await call(partial(self._env.reset, seed=self._seed), EnvError)
        return self._observe(observation)

    def check(self, text: str) -> str:
        """Tell why a text is no action; "" = it is one."""
        try:
            action = self._act(text)
        except ValueError as error:
            return str(error) or "this is no action here"
        inside = self._env.action_space.contains(action)
        return "" if inside else "the environment does not take this action"

    async def step(self, text: str) -> Said:
        """Carry out an action."""
        seen, reward, terminated, truncated, info = await call(
            partial(self._env.step, self._act(text)), EnvError
        )
        success = info.get("is_success", info.get("success"))
        return Said(
            self._observe(seen),
            float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated) and not terminated,
            success=None if success is None else bool(success),
        )

    async def finish(self) -> float:
        """Return what is still owed at the limit of steps: nothing."""
        return 0.0

    async def aclose(self) -> None:
        """Close the environment."""
        await call(self._env.close, EnvError)
