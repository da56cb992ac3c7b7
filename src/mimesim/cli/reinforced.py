"""What people are told of reinforcement: a batch in words, and what came of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_OF_GYM = "episode/reward/"
"""Entries of a batch that are there for each gym of a mixture."""
_SIDES = ("user", "judge", "coach")


def outcome(result: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what came of a `train.agent` run: in words, and its success before and after."""
    first, last = _mean(result["curve"][:10]), _mean(result["curve"][-10:])
    shown = ["unknown" if mean is None else f"{mean:.1%}" for mean in (first, last)]
    text = (
        f"training success {shown[0]} -> {shown[1]} (first and last 10 batches; user "
        f"{result['user']}, judge {result['judge']}, seed {result['seed']}){_by_gym(result)}"
        f"{_held_out(result)}{_coached(result['csd'])}"
    )
    return text, {"before": {"training_success": first}, "after": {"training_success": last}}


def _by_gym(result: Mapping[str, Any]) -> str:
    """Tell the last success and reward of each gym, where there are several."""
    best = result["validation"].get("best") or {}
    text = ""
    for gym, found in result.get("gyms", {}).items():
        numbers = _both_numbers(found["success"], found["reward"])
        held = ""
        if f"reward/{gym}" in best:
            held = f"; held out {_both_numbers(best[f'success/{gym}'], best[f'reward/{gym}'])}"
            held += f", n = {best[f'episodes/{gym}']:.0f}"
        text += f"\n  {gym}: {numbers} (last 25 batches, {found['rows']} rows an epoch{held})"
    return text


def _both_numbers(success: float | None, reward: float | None) -> str:
    if success is None or reward is None:
        return "not met"
    return f"success {success:.1%}, reward {reward:.3f}"


def _held_out(result: Mapping[str, Any]) -> str:
    """Tell the best validation, where there was one, and what the run cost."""
    validation, usage, text = result["validation"], result["usage"], ""
    if validation and validation["best"]:
        best = validation["best"]
        early = ", stopped early" if result["stopped_early"] else ""
        text = (
            f"\nheld-out training tasks: best reward {best['reward']:.3f}, success "
            f"{best['success']:.1%} after batch {best['batch']} (greedy, n = {best['episodes']:.0f}; "
            f"the {validation['kept']} weights are kept{early})"
        )
    spent = [f"{usage[f'{s}_calls']:.0f} {s} calls" for s in _SIDES if f"{s}_calls" in usage]
    cost = sum(value for key, value in usage.items() if key.endswith("_cost"))
    if spent:
        text += f"\n{', '.join(spent)}" + (f", ${cost:.2f}" if cost else "")
    return text


def _coached(csd: Mapping[str, Any]) -> str:
    """Tell what came of the notes, where there were any."""
    if not csd:
        return ""
    notes = csd["notes"]
    experimental = " (experimental)" if csd["experimental"] else ""
    text = (
        f"\nCSD {csd['estimator']}{experimental}, alpha {csd['alpha']:g}, coach {csd['coach']}: "
        f"{notes['written']} notes of {notes['asked']} asked for ({notes['none']} NONE, "
        f"{notes['failed']} failed, {notes['leaked']} leaked)"
    )
    return f"{text}, mean gap {csd['gap_mean']:+.3f} nats" if "gap_mean" in csd else text


def _mean(rows: Sequence[dict[str, float]]) -> float | None:
    values = [row["episode/success"] for row in rows if "episode/success" in row]
    return sum(values) / len(values) if values else None


def batch(log: Any) -> str:
    """Return the numbers of a `train.agent.BatchLog` in words, each after a comma."""
    values = log.values
    # Without a reward every rollout failed.
    parts = [f"reward {values['reward']:.2f}" if "reward" in values else "no reward"]
    if "episode/success" in values:
        gyms = [key.removeprefix(_OF_GYM) for key in values if key.startswith(_OF_GYM)]
        each = ", ".join(f"{gym} {values[f'episode/success/{gym}']:.0%}" for gym in gyms)
        whole = f"success {values['episode/success']:.0%}"
        parts.insert(0, f"{whole} ({each})" if each else whole)
    if "validation/reward" in values:
        parts.append(f"held out {values['validation/reward']:.2f}")
    if "episode/turns" in values:
        parts.append(f"{values['episode/turns']:.1f} turns")
    if "completions/mean_length" in values:
        parts.append(f"{values['completions/mean_length']:.0f} tokens")
    if values.get("episode/gated"):
        parts.append(f"{values['episode/gated']:.0%} malformed")
    if values.get("credit/invalid"):
        parts.append(f"{values['credit/invalid']:.0f} failed")
    if "csd/gate_mean" in values:
        parts.append(f"gate {values['csd/gate_mean']:.2f}")
    parts += [_calls(side, values) for side in _SIDES if f"usage/{side}_calls" in values]
    parts.append(f"{log.seconds:.1f} s")
    return "".join(f", {part}" for part in parts)


def _calls(side: str, values: Mapping[str, float]) -> str:
    cost = values.get(f"usage/{side}_cost")
    dollars = f" (${cost:.4f})" if cost else ""
    return f"{values[f'usage/{side}_calls']:.0f} {side} calls{dollars}"
