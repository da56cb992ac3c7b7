"""The tables of an evaluation in every format, published rows beneath, nothing active in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.errors import ConfigError, UnknownNameError
from mimesim.report.grids import difference_grid, grids, matrix_grids
from mimesim.report.html import render
from mimesim.report.latex import escape, latex
from mimesim.report.make import write
from mimesim.report.tables import markdown
from mimesim.results import Difference, Estimate, GymAverages, LostCell, Reference, RunRecord
from tests.report import samples

WEIGHTED = Estimate(0.25, 0.2, 0.3, 10, "bootstrap")
ARM = GymAverages(
    "50% & more_",
    "policy:x",
    "all users (mean)",
    "rule",
    WEIGHTED,
    Estimate(0.5),
    weighted_strict=0.2,
    gyms={"tau": 0.25, "search": 0.125},
    search="closed",
    users=("u1", "u2"),
    seeds=(0, 1),
    per_seed={"seed 0": 0.2, "seed 1": 0.3},
    over_seeds=Estimate(0.25, -0.385, 0.885, 2, "Student t"),
    judge_mode="self",
    n=19,
    episodes=20,
    tasks=10,
    missing=("travel",),
)
RECORD = RunRecord(
    "Agents",
    "v",
    kind="eval",
    gym_averages=(
        replace(ARM, user="u1", weighted=Estimate(0.2)),
        replace(ARM, user="u2", weighted=Estimate(0.3)),
    ),
    arm_averages=(ARM,),
    references=(
        Reference("base", "a paper", weighted=18.49, users={"u1": 17.0}, gyms={"tau": 2.36}),
    ),
    differences=(
        Difference("a", "b", Estimate(0.0155, 0.001, 0.03, 40), note="n", p=0.0004, p_holm=0.02),
    ),
    lost=(LostCell("a", 1, "u2", "tau", "gone"),),
    notes={"references": "judge: other"},
)


def test_the_report_row_is_whole() -> None:
    arms, gyms, users = matrix_grids(RECORD)
    row = dict(zip(arms.head, arms.rows[0], strict=True))
    assert row["Weighted"] == "25.00"
    assert row["95 %, tasks"] == "20.00 to 30.00"
    assert row["95 %, seeds"] == "-38.50 to 88.50"
    assert (row["Training seeds"], row["Counted"], row["Not counted, %"]) == (
        "0, 1",
        "19/20",
        "5.0",
    )
    assert (row["Failures as 0"], row["Judge"], row["Search"]) == ("20.00", "self", "closed")
    assert arms.notes == ("50% & more_: partial: without travel",)
    assert gyms.rows[1] == ("base (published)", "2.36", "–", "18.49", "–")
    assert users.rows == (
        ("50% & more_", "20.00", "30.00", "25.00"),
        ("base (published)", "17.00", "–", "18.49"),
    )
    assert "a paper" in gyms.notes[0]
    assert "judge: other" in gyms.notes[0]


def test_p_values_stand_where_they_were_worked_out() -> None:
    tested = difference_grid(RECORD.differences)
    assert tested.rows[0][4:7] == ("yes", "<0.001", "0.020")
    plain = difference_grid(samples.record().differences)
    assert "p" not in plain.head
    assert plain.notes == ()


def test_latex_is_escaped_and_whole() -> None:
    text = latex(RECORD)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 5
    assert r"50\% \& more\_ & 0, 1 & 25.00" in text
    for line in text.splitlines():
        if line.endswith(r" \\"):
            assert "[" not in line.replace("{[}", "")
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    widths = {line.count(" & ") for line in body.strip().splitlines()}
    assert widths == {14}
    assert escape("a\\b{c}$\n^~#|<>") == (
        r"a\textbackslash{}b\{c\}\$ \textasciicircum{}\textasciitilde{}\#\textbar{}"
        r"\textless{}\textgreater{}"
    )
    assert escape("−0.5 –") == "$-$0.5 --"


def test_latex_of_a_record_of_one_gym_is_its_matrix() -> None:
    keys = [grid.key for grid in grids(samples.record())]
    assert keys == ["success", "differences"]
    assert r"\toprule" in latex(samples.record())


def test_markdown_and_html_hold_the_same_rows() -> None:
    text = markdown(RECORD)
    assert "## Arms, mean over 2 users, times 100" in text
    assert r"| 50% \& more\_ | 0, 1 | 25.00 |" in text
    assert "## Cells that could not be finished" in text
    page = render(RECORD)
    assert "50% &amp; more_" in page
    assert "base (published)" in page
    assert "p &lt;0.001 by flipped signs" in page


def test_formats_are_written_by_name(tmp_path: Path) -> None:
    RECORD.write(tmp_path / "record.json")
    assert write(tmp_path, form="latex").out == tmp_path / "report.tex"
    made = write(tmp_path, form="json")
    assert made.out == tmp_path / "report.tables.json"
    assert jsonio.loads(made.text)["arms"][0]["weighted_ci95"] == [0.2, 0.3]
    with pytest.raises(UnknownNameError, match="format 'pdf'"):
        write(tmp_path, form="pdf")
    with jsonio.Appender(tmp_path / "x.jsonl") as out:
        out.append(samples.episodes(1)[0].to_json())
    with pytest.raises(ConfigError, match="no LaTeX"):
        write(tmp_path / "x.jsonl", form="latex")
