"""Validation of an agent in training: tasks held out of the training tasks, played greedily.

The same tasks with the same seeds every time, so two scores of one run are paired. The best weights
are kept beside the checkpoints. With several processes each one plays its share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mimesim.config.ranges import COUNT, NATURAL, SHARE, check_ranges
from mimesim.envs.base import Task
from mimesim.errors import ConfigError
from mimesim.seeds import generator
from mimesim.train import launch
from mimesim.train.grpo import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationConfig:
    """How a run is validated.

    Attributes:
        share: of the training tasks, held out; 0 = none, and nothing is validated.
        every: batches between two validations; one more stands before the first batch.
        at_most: most tasks that are held out.
        keep: weights of the result: the `last` ones, or the `best` by the mean reward.
        patience: validations without a better one after which the run ends; 0 = never.
    """

    share: float = 0.0
    every: int = 10
    at_most: int = 64
    keep: Literal["last", "best"] = "last"
    patience: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that validate nothing.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, SHARE, "share")
        check_ranges(self, COUNT, "every", "at_most")
        check_ranges(self, NATURAL, "patience")
        if self.share == 0 and (self.keep == "best" or self.patience):
            key = "keep" if self.keep == "best" else "patience"
            raise ConfigError(f"'{key}' needs validation", mend="set 'share' above 0, e.g. 0.05")
        if self.share == 1:
            raise ConfigError("'share' cannot be 1", expected="less: some tasks must be trained on")


def split(
    tasks: Sequence[Task], wanted: int, config: ValidationConfig, seed: int
) -> tuple[list[Task], list[Task]]:
    """Return `wanted` training tasks and those held out; no task is on both sides.

    Args:
        tasks: training tasks of the gym, in order; one may occur several times.
        wanted: how many are trained on; the rest is repeated from the start where they run out.
        config: what is held out.
        seed: of the choice.

    Raises:
        ConfigError: there are too few tasks to hold one out.
    """
    if config.share == 0:
        return list(tasks[:wanted]), []
    names = list(dict.fromkeys(task.id for task in tasks))
    count = min(config.at_most, max(1, round(config.share * len(names))))
    if count >= len(names):
        raise ConfigError(
            f"{len(names)} training tasks are too few to hold {count} out",
            where="validation.share",
            expected="at least one task on each side",
        )
    held = set(generator(seed, "validation").sample(names, count))
    first = {task.id: task for task in reversed(tasks)}
    rest = [task for task in tasks if task.id not in held]
    rounds = -(-wanted // len(rest))
    return (rest * rounds)[:wanted], [first[name] for name in names if name in held]


def _sums_by_gym(samples: Sequence[Sample]) -> dict[str, float]:
    """Return sums of reward, success and episodes of every gym; nothing where there is but one."""
    found: dict[str, float] = {}
    for sample in samples:
        for key, value in sample.metrics.items():
            what, gym = key.partition("/")[::2]
            if not gym:
                continue
            found[key] = found.get(key, 0.0) + value
            if what == "reward":
                found[f"episodes/{gym}"] = found.get(f"episodes/{gym}", 0.0) + 1
    return found


Play = Callable[[Sequence[Any], Any], list[Sample]]
"""Plays some of those held out with a model."""


@dataclass(slots=True)
class Validator:
    """Scores a model now and then, and remembers the best.

    Attributes:
        tasks: those held out, in the form in which `play` takes them.
        play: plays them greedily.
        keep: writes the weights of a new best; the first process alone calls it.
        scores: one dict a validation: batch, reward, success, episodes, failed; where there are
            several gyms, reward, success and episodes of each under its name, too.
    """

    config: ValidationConfig
    tasks: Sequence[Any]
    play: Play
    keep: Callable[[Any], None]
    scores: list[dict[str, float]] = field(default_factory=list)

    @property
    def best(self) -> dict[str, float] | None:
        """The best validation so far, the earliest of equals."""
        scored = [score for score in self.scores if "reward" in score]
        return max(scored, key=lambda score: score["reward"], default=None)

    def due(self, batch: int, last: int) -> bool:
        """Tell whether batch `batch` of `last` is followed by a validation; 0 = before the first."""
        return batch % self.config.every == 0 or batch == last

    def see(self, batch: int, model: Any) -> dict[str, float]:
        """Validate; return the numbers for the curve, and keep the weights of a new best."""
        mine = self.tasks[launch.rank() :: launch.processes()]
        samples = self.play(mine, model)
        valid = [sample for sample in samples if sample.valid]
        total = launch.summed(
            {
                "reward": sum(sum(sample.rewards) for sample in valid),
                "success": sum(sample.metrics["success"] for sample in valid),
                "episodes": len(valid),
                "failed": len(samples) - len(valid),
                **_sums_by_gym(valid),
            }
        )
        score = {"batch": batch, "failed": total["failed"]}
        for gym in [key.removeprefix("episodes") for key in total if key.startswith("episodes")]:
            count = score[f"episodes{gym}"] = total[f"episodes{gym}"]
            if count:
                score |= {f"{k}{gym}": total[f"{k}{gym}"] / count for k in ("reward", "success")}
        self.scores.append(score)
        if self.best is score:
            if launch.is_first():
                self.keep(model)
            launch.wait()
        return {f"validation/{key}": value for key, value in score.items() if key != "batch"}

    def exhausted(self) -> bool:
        """Tell whether the last validations brought nothing better."""
        if not self.config.patience or self.best is None:
            return False
        since = [score for score in self.scores if score["batch"] > self.best["batch"]]
        return len(since) >= self.config.patience

    def summary(self) -> dict[str, Any]:
        """Return what the record of a run says about it."""
        return {
            "tasks": len(self.tasks),
            "kept": self.config.keep,
            "best": self.best,
            "scores": self.scores,
        }
