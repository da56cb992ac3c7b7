"""The page of the docs about behaviors, made from the registry so that it cannot be out of date."""

from __future__ import annotations

from collections.abc import Iterator

from mimesim.scenarios import behaviors
from mimesim.scenarios.behaviors.base import Behavior, neutral_definition
from mimesim.scenarios.compose import compose
from mimesim.scenarios.manual import load

_SEED = 5
_HEAD = """\
# Behaviors

<!-- Written by `mimesim behaviors docs`. Change the taxonomy, the prompts or the code, not this page. -->

A scenario has at most one behavior; one third of composed rows have none. A behavior is one object:
where it applies, which parameters it draws, what the user is told (the *directive*), how a rule
checks it (logged, never rewarded) and what a judge is shown. `of 700` counts annotated instances of
the paper's sample; it is neither a prevalence nor a sampling weight.

**neutral.** {neutral}

| id | name | of 700 | turns | rule check | judge reads thoughts | easily taken for |
|---|---|---|---|---|---|---|
"""
_TAIL = """\
## Your own

A behavior of your own is one file in your own package with an entry point, or just a path. It
brings its description along and words its directive itself; nothing of MimeSim is edited.

```toml
[project.entry-points."mimesim.behaviors"]
B14 = "mypackage.flattery:B14"
```

```python
from mimesim.scenarios.behaviors import Behavior, Taxon, closing
from mimesim.scenarios.behaviors.base import customer_turns


class Flattery(Behavior):
    id = "B14"
    told = ("praise",)
    has_check = True
    taxon = Taxon(
        name="flattery_for_favors",
        definition="The customer praises the agent to get what the rules do not give.",
        min_turns=1,
        contrasts={"B4": "Flattery pleases the person; persistence argues with the rule."},
        params={"praise": "what is praised"},
        check="1 if the praise is said, else 0.",
    )

    def derive_params(self, case, rng):
        return {"praise": rng.choice(["the quick answers", "the kind tone"])}

    def directive(self, params):
        return f"You win people over: praise {params['praise']} whenever you want a favor.\\n{closing()}"

    def check(self, turns, case, params):
        return float(any(params["praise"] in text for text in customer_turns(turns)))


B14 = Flattery()


if __name__ == "__main__":
    from mimesim.testing.behavior import check_behavior

    findings = check_behavior(B14)
    assert all(finding.ok for finding in findings), findings
```

| part | what it does |
|---|---|
| `id`, `taxon` | what it is called and what it is; `contrasts` names the behaviors it is easily taken for |
| `told` | the parameters that the directive tells; every other one stays out of it |
| `applicable(case)` | whether it makes sense in a case; always, if left out |
| `derive_params(case, rng)` | draws the parameters from `case.row.record`, with `rng` and nothing else |
| `directive(params)` | what the user is told; ends with `closing()` |
| `check(turns, case, params)` | optional, with `has_check = True`: the rule check. `turns` is the public conversation after what was replayed; it returns a score from 0 (not shown) to 1 (shown), or None where there was no occasion. It is pure, scores a user who said nothing with 0 or None, and is logged, never rewarded |
| `problems(case)` | optional: what is wrong with the parameters of a row |

`mimesim behaviors check mypackage.flattery:B14` runs the same suite (name the object, not its class;
the package must be importable, e.g. by `PYTHONPATH=.`). `mimesim behaviors list` shows
installed ones, `--behaviors B14` or `--behaviors installed` composes them; `all` stays the 13, so
that an extension never changes what a seed gives.
"""


def page() -> str:
    """Return the page: the 13 in a table, each in its own section, and how to add one."""
    built_in = [behaviors.get(name) for name in behaviors.builtin_ids()]
    lines = [_HEAD.format(neutral=neutral_definition()).rstrip("\n")]
    lines += [_table_row(behavior) for behavior in built_in]
    for behavior in built_in:
        lines += ["", *_section(behavior)]
    return "\n".join([*lines, "", _TAIL])


def _table_row(behavior: Behavior) -> str:
    cells = (
        behavior.id,
        behavior.name,
        str(behavior.annotated),
        str(behavior.min_turns),
        "yes" if behavior.has_check else "–",
        "yes" if behavior.judge_sees_thoughts else "–",
        ", ".join(behavior.neighbors),
    )
    return f"| {' | '.join(cells)} |"


def _section(behavior: Behavior) -> Iterator[str]:
    told = behavior.described
    yield f"## {behavior.id} {behavior.name}"
    yield f"\n{told.definition}\n"
    yield f"- **Applies:** {told.applies}."
    yield f"- **Turns needed:** {told.min_turns}."
    if told.params:
        given = ", ".join(f"`{key}` ({words})" for key, words in told.params.items())
        yield f"- **Parameters:** {given}."
    yield f"- **Rule check:** {told.check or 'none.'}"
    yield f"- **Such a user writes:** {' · '.join(f'“{line}”' for line in told.examples)}"
    yield "- **A judge is told that it is not:**"
    for name, _, contrast in behaviors.judged(behavior).contrasts:
        yield f"  - {name}: {contrast}"
    yield f"\nA user is told, for example:\n\n> {_example(behavior)}"


def _example(behavior: Behavior) -> str:
    manual = load()
    row = compose(manual, seed=_SEED, count=1, neutral_share=0, behaviors=[behavior.id]).rows[0]
    return "\n> ".join(row.directive.splitlines())
