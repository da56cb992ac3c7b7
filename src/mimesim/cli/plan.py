"""`mimesim plan`: what a training would cost before it is started."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.output import emit_json, fail, near, say, stdout, table
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.train.plan import Plan
    from mimesim.train.plan.estimate import Estimate
    from mimesim.train.plan.timing import BatchSeconds

    Line = tuple[str, Callable[[Estimate], float | None], Callable[[float], str]]

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def command(
    recipes: Annotated[
        list[Path] | None,
        typer.Argument(help="Training recipes, by name (csd-mini) or file; each is planned apart."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="a100-80gb, h100, h200, or cpu (one core each).")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="How many train; served users are counted beside.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Shape of the model, or a folder with config.json.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Who samples: vllm, or hf (the trainer's own process).")
    ] = None,
    sharded: Annotated[
        bool | None,
        typer.Option("--sharded/--whole", help="Spread weights and optimizer over the GPUs."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="TOML file of your prices; the defaults are dated.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value of the recipe, e.g. --set x-plan.turns=8."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The recipe's small form.")] = False,
    assumptions: Annotated[
        bool, typer.Option("--assumptions", help="Print what is assumed and why, and leave.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")] = False,
) -> None:
    """Estimate time, memory, tokens, calls and money of trainings, without starting one.

    Every number has a fast and a slow end, all assumptions at one end at once; the point between is
    no promise. How far the same model is off the published costs stands beside it.
    """
    if assumptions:
        _tell_assumptions(json=json)
        return
    from mimesim.train.plan import Asked, plan_recipe
    from mimesim.train.plan.money import default_prices, read_prices

    try:
        if engine not in (None, "vllm", "hf"):
            raise UsageError(f"unknown engine {engine!r}", where="--engine", expected="vllm or hf")
        if not recipes:
            raise UsageError("no recipe is named", expected="mimesim plan <recipe> ...")
        asked = Asked(
            gpu=gpu,
            gpus=gpus,
            model=model,
            engine=engine,
            sharded=sharded,
            prices=read_prices(prices) if prices else default_prices(),
            overrides=tuple(settings or ()),
            quick=quick,
        )
        plans = [plan_recipe(path, asked) for path in recipes]
    except UsageError as error:
        fail(error)
    if json:
        emit_json({"plans": [plan.to_json() for plan in plans]})
        return
    for plan in plans:
        _tell(plan)


def _tell_assumptions(*, json: bool) -> None:
    from mimesim.train.plan.assumptions import ASSUMPTIONS
    from mimesim.train.plan.machines import MACHINES

    if json:
        emit_json({name: {**one._asdict(), "span": one.span} for name, one in ASSUMPTIONS.items()})
        return
    rows = [[n, one.span.fast, one.span.slow, one.unit, one.why] for n, one in ASSUMPTIONS.items()]
    stdout().print(table("", ("assumption", "fast", "slow", "unit", "why"), rows))
    peaks = [
        [
            one.name,
            f"{one.flops / 1e12:g}",
            f"{one.bandwidth / 1e12:g}",
            one.memory / 1e9,
            one.source,
        ]
        for one in MACHINES.values()
    ]
    columns = ("machine", "TFLOP/s", "TB/s", "GB", "source")
    stdout().print(table("\npeaks:", columns, peaks))


def _tell(plan: Plan) -> None:
    setting = plan.setting
    serving = f" + {setting.servers} that serve" if setting.servers else ""
    states = "sharded" if setting.sharded else "whole on each"
    sampled = f", sampled by {setting.engine}" if plan.sides["point"].batch else ""
    say(f"{near(plan.recipe)}: {plan.label}")
    say(
        f"  {setting.shape.name} ({_scaled(setting.shape.parameters)} parameters), {setting.count} x "
        f"{setting.machine.name}{serving}, weights and optimizer {states}{sampled}"
    )
    if plan.rows:
        parts = ", ".join(f"{split.trained:,} {gym}" for gym, split in plan.rows.items())
        whole = sum(split.trained for split in plan.rows.values())
        held = sum(split.held for split in plan.rows.values())
        say(f"  {whole:,} rows an epoch ({parts}), {held:,} held out, {plan.epochs:.2f} epochs")
    stdout().print(table("", ("  ", "fast", "point", "slow"), _rows(plan)))
    error = plan.error
    if error is not None:
        where = "inside" if error.inside else "outside"
        say(
            f"  published: {error.what}; this model says {_time(error.fast)} to "
            f"{_time(error.slow)}, point {_time(error.point)} ({error.off:+.0%}; the published one "
            f"is {where})"
        )
    for warning in plan.warnings:
        say(f"  note: {warning}")
    if any(call.place == "remote" for call in plan.sides["point"].calls):
        say(f"  prices: of {plan.price_date}, yours to set with --prices")
    if plan.passed_over:
        names = dict.fromkeys(re.sub(r"\.\d+\.", ".", key) for key in plan.passed_over)
        say("  keys without influence here: " + ", ".join(names))
    say("")


def _rows(plan: Plan) -> list[list[str]]:
    """Return the lines of the table; one that is zero on all sides is left out."""
    lines: list[Line] = [
        ("wall-clock", lambda e: e.seconds, _time),
        (
            "GPU-hours" if plan.setting.machine.is_gpu else "core-hours",
            lambda e: e.gpu_hours,
            _scaled,
        ),
    ]
    if plan.gpu_hour is not None:
        rate = plan.gpu_hour
        lines.append(("machines, dollars", lambda e: e.gpu_hours * rate, _scaled))
    if plan.sides["point"].batch is not None:
        lines += _batch_lines()
    lines += [
        ("tokens generated", lambda e: e.generated, _scaled),
        ("tokens trained on", lambda e: e.trained, _scaled),
        ("tokens of the teacher", lambda e: e.teacher, _scaled),
        ("memory of each", lambda e: e.memory.whole, _bytes),
        ("  weights", lambda e: e.memory.weights, _bytes),
        ("  gradients", lambda e: e.memory.gradients, _bytes),
        ("  optimizer", lambda e: e.memory.optimizer, _bytes),
        ("  activations, all kept", lambda e: e.memory.kept, _bytes),
        ("  activations, checkpointed", lambda e: e.memory.checkpointed, _bytes),
        ("  sampler's weights", lambda e: e.memory.sampler, _bytes),
        ("  cache of attention", lambda e: e.memory.cache, _bytes),
    ]
    rows = [_row(plan, *line) for line in lines]
    for at, call in enumerate(plan.sides["point"].calls):
        rows += _call_rows(plan, at, f"{call.role} ({call.model}, {call.place})")
    return [row for row in rows if any(cell not in ("0", "0 B", "0 s") for cell in row[1:])]


def _batch_lines() -> list[Line]:
    """Return the parts of a generation batch."""
    return [
        ("one batch", _of_batch(lambda b: b.whole), _time),
        ("  sampling", _of_batch(lambda b: b.sampling), _time),
        ("  waiting for others", _of_batch(lambda b: b.waiting), _time),
        ("  notes", _of_batch(lambda b: b.coaching), _time),
        ("  teacher", _of_batch(lambda b: b.teaching), _time),
        ("  updates", _of_batch(lambda b: b.updating), _time),
        ("  around it", _of_batch(lambda b: b.around), _time),
    ]


def _of_batch(value: Callable[[BatchSeconds], float]) -> Callable[[Estimate], float | None]:
    return lambda found: value(found.batch) if found.batch is not None else None


def _call_rows(plan: Plan, at: int, who: str) -> list[list[str]]:
    return [
        _row(plan, f"calls of {who}", lambda e: e.calls[at].calls, _scaled),
        _row(plan, "  tokens read", lambda e: e.calls[at].prompt_tokens, _scaled),
        _row(plan, "  tokens written", lambda e: e.calls[at].completion_tokens, _scaled),
        _row(plan, "  dollars", lambda e: e.calls[at].dollars, _scaled),
    ]


def _row(
    plan: Plan,
    name: str,
    value: Callable[[Estimate], float | None],
    shown: Callable[[float], str],
) -> list[str]:
    found = [value(side) for side in plan.sides.values()]
    return ["  " + name, *("unknown" if one is None else shown(one) for one in found)]


def _scaled(value: float) -> str:
    """Return a number with three digits."""
    for scale, letter in _SCALES:
        if value >= scale:
            return f"{value / scale:.3g} {letter}"
    return f"{value:.3g}"


def _bytes(value: float) -> str:
    return f"{_scaled(value)}B" if value >= 1e3 else f"{value:.3g} B"


def _time(seconds: float) -> str:
    for unit, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"
