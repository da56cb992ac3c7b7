"""How good the rule judges are, measured again: the figures of docs/judges.md.

On the hand-written dialogues and on 200 conversations of scripted customers, whose behavior is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.dialogue.episode import read_file
from mimesim.judges.behavior import EXHIBITED
from mimesim.judges.behavior_cues import HELD_OUT, MAIN
from mimesim.judges.behavior_rules import rule_answer
from mimesim.judges.stored import read
from tests.support.performances import everything, performance


@pytest.mark.parametrize(
    ("judge", "right"),
    [
        (MAIN, {"positive": 69, "neighbor": 39, "negative": 43}),
        (HELD_OUT, {"positive": 60, "neighbor": 39, "negative": 42}),
    ],
)
def test_right_verdicts_on_hand_written_dialogues(judge: str, right: dict[str, int]) -> None:
    found = dict.fromkeys(right, 0)
    for one in everything():
        answer = rule_answer(performance(one), judge)
        assert answer is not None
        shown = answer.get("exhibit", answer.get("cooperative", 0)) >= EXHIBITED
        found[one.expected["kind"]] += shown == one.expected["realized"]
    assert found == right


def test_scripted_customers_whose_behavior_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mimesim(*words: str) -> dict[str, Any]:
        assert invoke([*words, "--json"]) == 0
        found: dict[str, Any] = jsonio.loads(capsys.readouterr().out.splitlines()[-1])
        return found

    talks, labels = str(tmp_path / "talks"), str(tmp_path / "labels.jsonl")
    mimesim("run", "--episodes=200", "--seed=5", "--user=scripted:realistic", f"--out={talks}")
    agreed = mimesim("judge", "agree", talks)
    (row,) = [r for r in agreed["rows"] if (r["behavior"], r["measure"]) == ("all", "exhibit")]
    assert (row["n"], row["asked"]) == (134, 134)
    assert row["share"]["value"] == pytest.approx(0.836, abs=5e-4)
    assert row["kappa"]["value"] == pytest.approx(0.66, abs=5e-3)
    judged = [v for v in read(agreed["out"]) if v.kind == "behavior" and v.value is not None]
    for judge, shown in {"rule": 56, "rule-heldout": 48}.items():
        own = [v.value["exhibit"] for v in judged if v.judge == judge and v.value is not None]
        assert (sum(one >= EXHIBITED for one in own), len(own)) == (shown, 134)

    mimesim("annotate", talks, "--judge=rule", "--judge=rule-heldout", f"--out={labels}")
    episodes = read_file(Path(talks) / "episodes.jsonl")
    told = {e.id: [b["id"] for b in (e.private or {}).get("behavior") or []] for e in episodes}
    for judge, counts in {"rule": (34, 17), "rule-heldout": (17, 17)}.items():
        hits = [
            label["behavior"] in told[one.item]
            for one in read(labels)
            if one.judge == judge and one.value is not None
            for label in one.value["labels"]
        ]
        assert (len(hits), sum(hits)) == counts
