"""Golden numbers of the paired test: donors, index and interval, cut, parser, printed rows."""

from __future__ import annotations

from mimesim.bench.suites.goldens.base import Check, holds, numbers
from mimesim.bench.suites.realusersim.asking import SIDES, Five
from mimesim.bench.suites.realusersim.cases import cut, sattolo
from mimesim.bench.suites.realusersim.suite import SEED, index
from mimesim.bench.suites.references import references
from mimesim.models.structured import UnreadableError, parse
from mimesim.stats import DRAWS, mean_ci


def _donors() -> str:
    return " | ".join(
        " ".join(map(str, sattolo(n, seed))) for n, seed in ((6, 0), (6, 1), (10, 1234))
    )


def _index() -> dict[str, float | None]:
    found, person = {}, {}
    for user in range(40):
        for case in range(user % 3 + 1):
            item = f"{user}-{case}#0"
            hits = min(5, (7 * user + 3 * case) % 6)
            found[item] = [place < hits for place in range(len(SIDES))]
            person[item] = str(user)
    one = index(found, person, DRAWS)[0].value
    alone = mean_ci([sum(hits) / 5 for hits in found.values()], seed=SEED)
    return {
        "cases": len(found),
        "hits": sum(map(sum, found.values())),
        "FI": one.value,
        "low": one.low,
        "high": one.high,
        "low, by case": None if alone.low is None else 100 * alone.low,
        "high, by case": None if alone.high is None else 100 * alone.high,
    }


def _cut() -> dict[str, float | None]:
    turns = [("user" if i % 2 == 0 else "assistant", f"t{i}") for i in range(11)]
    monologue = [("user", f"t{i}") for i in range(12)]
    ends = [("user", "bye /close"), ("user", "/close")]
    return {
        "11 in turn": len(cut(turns, synthetic=True)),
        "12 in a row": len(cut(monologue, synthetic=True)),
        "left of two ends": len(cut(ends, synthetic=True)),
        "of a person": len(cut(ends, synthetic=False)),
    }


def _parser() -> str:
    def reply(value: str, names: tuple[str, ...] = SIDES) -> str:
        return "{" + ", ".join(f'"{name}": {{"is_matched": {value}}}' for name in names) + "}"

    replies = (
        reply("true", SIDES[1:]),
        reply('"maybe"'),
        reply("1"),
        "no JSON",
        f"```json\n{reply('false')}\n```",
    )
    return " ".join("ok" if _reads(one) else "error" for one in replies)


def _reads(text: str) -> bool:
    try:
        parse(text, Five)
    except UnreadableError:
        return False
    return True


def _printed() -> str:
    rows = [row.values for row in references("realusersim") if len(row.values) > 1]
    wrong = [row for row in rows if abs(sum(row.values()) - 6 * row["FI"]) / 5 > 0.05]
    return f"{len(rows) - len(wrong)} of {len(rows)} agree with themselves"


CHECKS: list[Check] = [
    holds("realusersim/donors", "2 4 1 0 5 3 | 3 2 4 5 0 1 | 8 3 5 2 6 4 9 0 1 7", _donors),
    numbers(
        "realusersim/index",
        {
            "cases": 79,
            "hits": 221,
            "FI": 55.949367,
            "low": 49.577465,
            "high": 61.379310,
            "low, by case": 48.607595,
            "high, by case": 63.291139,
        },
        _index,
    ),
    numbers(
        "realusersim/cut",
        {"11 in turn": 5, "12 in a row": 9, "left of two ends": 1, "of a person": 2},
        _cut,
    ),
    holds("realusersim/parser", "error error error error ok", _parser),
    holds("realusersim/printed rows", "11 of 11 agree with themselves", _printed),
]
