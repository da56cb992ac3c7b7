"""`mimesim data` on small files of invented chats, good and bad."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.cli.data import app
from mimesim.cli.main import invoke
from tests.support.chats import chat, contents, ids_of, say, sentence, write_rows

pytest.importorskip("datasketch")
pytest.importorskip("phonenumbers")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_rows(
        tmp_path / "logs.jsonl",
        [{"id": "a", "turns": [{"role": "user", "text": "[bold]hi[/bold]"}]}],
    )


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "chats.jsonl", (chat(n) for n in range(40)))


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def build(out: Path, *arguments: str | Path) -> dict[str, Any]:
    shown = run("build", *arguments, "--out", out, "--json", "--quiet")
    assert shown.exit_code == 0, shown.stderr
    found: dict[str, Any] = jsonio.loads(shown.stdout.splitlines()[-1])
    return found


def refused(*arguments: str | Path) -> str:
    """Return the one line by which the whole command line refuses."""
    told = io.StringIO()
    with redirect_stderr(told):
        code = invoke(["data", "build", *map(str, arguments), "--quiet"])
    assert code == 2
    assert told.getvalue().startswith("error: ")
    assert told.getvalue().count("\n") == 1
    return told.getvalue()


def rejects(out: Path) -> list[tuple[str, str, str]]:
    return [
        (Path(line.value["where"]).name, line.value["kind"], line.value["reason"])
        for line in jsonio.read_jsonl(out / "rejects.jsonl")
    ]


# ---------------------------------------------------------------------------------- build


def test_a_build_for_people(tmp_path: Path, chats: Path) -> None:
    shown = run("build", chats, "--out", tmp_path / "built")
    assert shown.exit_code == 0
    assert "own: train 32, validation 4, test 4" in shown.stdout
    assert "card.md" in shown.stdout
    assert "# Data card" in (tmp_path / "built" / "card.md").read_text("utf-8")


def test_a_build_for_programs_is_repeated_byte_by_byte(tmp_path: Path, chats: Path) -> None:
    found = build(tmp_path / "a", chats)
    assert found["out"] == str(tmp_path / "a")
    assert found["files"]["train"]["dialogues"] == 32
    build(tmp_path / "b", f"own:{chats}")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    build(tmp_path / "b", f"own:{chats}")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_recipe(tmp_path: Path, chats: Path) -> None:
    other = write_rows(tmp_path / "more.jsonl", (chat(n) for n in range(100, 140)))
    recipe = tmp_path / "mix.toml"
    recipe.write_text(
        f"""
x-config = "mimesim.corpora.build:BuildConfig"
out = "built"
test = 0.0
validation = 0.0
[[source]]
corpus = "own"
place = "{chats}"
share = 1.0
[[source]]
corpus = "own"
place = "{other}"
share = 0.5
""",
        "utf-8",
    )
    shown = run("build", "--recipe", recipe, "--set", "test=0.25", "--quiet")
    assert shown.exit_code == 0, shown.stderr
    parts = jsonio.read_json(tmp_path / "built" / "build.json")["sources"]
    assert [part["parts"]["train"]["dialogues"] for part in parts] == [
        len(ids_of(tmp_path / "built", "train") & {f"c{n}" for n in range(40)}),
        len(ids_of(tmp_path / "built", "train") & {f"c{n}" for n in range(100, 140)}),
    ]
    assert parts[0]["parts"]["train"]["dialogues"] == pytest.approx(
        2 * parts[1]["parts"]["train"]["dialogues"], abs=1
    )


def test_a_dry_run_reads_nothing(tmp_path: Path) -> None:
    shown = run("build", "star:no/such/place", "--out", tmp_path / "x", "--dry-run", "--json")
    assert shown.exit_code == 0
    resolved = jsonio.loads(shown.stdout)
    assert resolved["source"][0]["corpus"] == "star"
    assert resolved["max_chars"] == 20_000
    assert not (tmp_path / "x").exists()


def test_progress_goes_to_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mimesim.cli import data

    monkeypatch.setattr(data, "_EVERY_S", 0.0)
    place = write_rows(tmp_path / "chats.jsonl", (chat(n) for n in range(5)))
    shown = run("build", place, "--out", tmp_path / "x", "--json")
    assert "own: 5 records read, 5 dialogues kept" in shown.stderr
    assert shown.stdout.count("\n") == 1


def test_wrong_use(tmp_path: Path, chats: Path) -> None:
    out = ("--out", tmp_path / "x")
    assert "no source" in refused(*out)
    assert "unknown corpus 'stra'" in refused("stra:x", *out)
    assert "did you mean 'star'" in refused("stra:x", *out)
    assert "file not found" in refused("star:no/such/place", *out)
    assert "'format' cannot be 'xml'" in refused(chats, *out, "--format", "xml")
    assert "unknown key 'tests'" in refused(chats, *out, "--set", "tests=0.1")
    assert "expected a deny-list" in refused(chats, *out, "--deny", tmp_path / "none.txt")
    assert "'max_rejects'" in refused(chats, *out, "--max-rejects", "7")
    assert "evaluation only" in refused(f"mirrorbench:{chats}", *out)


# ------------------------------------------------------------------------------ bad input


def cut_gz(folder: Path) -> Path:
    path = folder / "cut.jsonl.gz"
    whole = gzip.compress(b"".join(jsonio.dumps(chat(n)).encode() + b"\n" for n in range(200)))
    path.write_bytes(whole[: len(whole) // 2])
    return path


def raw(*lines: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "raw.jsonl"
        good = [jsonio.dumps(chat(n)).encode() for n in range(8)]
        path.write_bytes(b"\n".join([*good, *lines]) + b"\n")
        return path

    return write


def messages(*contents: Any) -> bytes:
    roles = ("user", "assistant")
    found = [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]
    return jsonio.dumps({"id": "m", "messages": found}).encode()


def line(**row: Any) -> bytes:
    return jsonio.dumps(row).encode()


USER, AGENT = {"role": "user", "text": "so?"}, {"role": "agent", "text": "well"}


@pytest.mark.parametrize(
    ("make", "reason", "place"),
    [
        (cut_gz, "truncated", "cut.jsonl.gz"),
        (raw(b'{"id": "x", "turns": ['), "bad_json", "raw.jsonl:9"),
        (raw(b'{"id": "\xff\xfe", "turns": []}'), "bad_encoding", "raw.jsonl:9"),
        (raw(line(id="x", turns=[{"text": "hi"}, AGENT])), "missing_role", "raw.jsonl:9"),
        (raw(line(id="x", turns=[{"role": "boss", "text": "hi"}])), "unknown_role", "raw.jsonl:9"),
        (raw(line(id="x", turns=[{**USER, "text": 5}, AGENT])), "bad_text", "raw.jsonl:9"),
        (raw(line(id="c1", turns=[USER, AGENT])), "duplicate_id", "raw.jsonl:9"),
        (
            raw(line(id="x", turns=[{"role": "user", "text": "y" * 10_000_000}, AGENT])),
            "message_too_long",
            "raw.jsonl:9",
        ),
        (raw(line(answer=42)), "no_conversation", "raw.jsonl:9"),
        (raw(b"[1, 2]"), "no_conversation", "raw.jsonl:9"),
    ],
)
def test_damage_is_noted_with_its_line(
    tmp_path: Path, make: Callable[[Path], Path], reason: str, place: str
) -> None:
    source = make(tmp_path)
    out = tmp_path / "built"
    build(out, source, "--max-rejects", "0.2")
    assert [(kind, why) for _, kind, why in rejects(out)] == [("damaged", reason)]
    assert rejects(out)[0][0].startswith(place)
    assert "turns" not in (out / "rejects.jsonl").read_text("utf-8").replace("'turns'", "")
    assert ids_of(out) >= {"c0", "c1", "c7"}
    if source.suffix != ".gz":
        text = refused(source, "--out", tmp_path / "strict")
        assert f"1 of 9 records of 'own' are damaged: {reason} 1" in text
        assert "--max-rejects" in text


@pytest.mark.parametrize(
    ("bad", "counts"),
    [
        (line(id="x", turns=[USER, USER, AGENT]), {"merged_turns": 1}),
        (line(id="x", turns=[USER, {**AGENT, "text": " "}, AGENT]), {"empty_turns": 1}),
        (line(id="x", turns=[{**USER, "text": "a \ud800"}, AGENT]), {"surrogates_replaced": 1}),
        (messages("hi", [{"type": "text", "text": "well"}, {"type": "image_url"}]), {}),
    ],
)
def test_what_can_be_mended_is_mended_and_counted(
    tmp_path: Path, bad: bytes, counts: dict[str, int]
) -> None:
    found = build(tmp_path / "built", raw(bad)(tmp_path))
    assert len(ids_of(tmp_path / "built")) == 9
    assert rejects(tmp_path / "built") == []
    for name, count in counts.items():
        assert found["sources"][0]["counts"][name] == count


def test_filters_do_not_count_as_damage(tmp_path: Path) -> None:
    rows = [chat(0), *(say("hello", name=f"s{n}") for n in range(9))]
    build(tmp_path / "built", write_rows(tmp_path / "logs.jsonl", rows))
    assert {(kind, why) for _, kind, why in rejects(tmp_path / "built")} == {
        ("filtered", "one_sided")
    }


# -------------------------------------------------------------------- inspect, fingerprint


def test_inspect_for_people(logs: Path) -> None:
    shown = run("inspect", logs)
    assert shown.exit_code == 0
    for text in ("license: own data", "kept: 1", "user: [bold]hi[/bold]", "nobody moderated"):
        assert text in shown.stdout


def test_inspect_names_things_and_keeps_messages_apart(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [say("one\ntwo", "ok", name="a")])
    shown = run("inspect", place)
    assert "  user: one\n    two\n  agent: ok" in shown.stdout
    assert "kept turns: 2" in shown.stdout
    assert "training allowed: unknown" in shown.stdout
    assert not [line for line in shown.stdout.splitlines() if "_" in line.partition(":")[0]]


def test_inspect_for_programs(logs: Path) -> None:
    shown = run("inspect", logs, "--json", "--samples", "0")
    found = jsonio.loads(shown.stdout.splitlines()[-1])
    assert (found["counts"]["kept"], found["samples"]) == (1, [])


def test_inspect_of_a_built_folder_and_of_a_damaged_file(tmp_path: Path, chats: Path) -> None:
    build(tmp_path / "built", chats)
    shown = run("inspect", tmp_path / "built", "--json")
    found = jsonio.loads(shown.stdout.splitlines()[-1])
    assert found["counts"]["dialogues_test"] == 4
    shown = run("inspect", raw(b"{")(tmp_path), "--json")
    found = jsonio.loads(shown.stdout.splitlines()[-1])
    assert (found["counts"]["bad_json"], found["counts"]["kept"]) == (1, 8)


def test_a_table_with_columns_of_its_own(tmp_path: Path) -> None:
    table = tmp_path / "tickets.csv"
    rows = [f"{n},{who},{sentence('csv', n, who)}" for n in range(20) for who in ("cust", "us")]
    table.write_text("\n".join(["ticket,sender,body", *rows]) + "\n", "utf-8")
    columns = {"id": "ticket", "role": "sender", "text": "body", "user": "cust"}
    options = [part for key, value in columns.items() for part in ("--option", f"{key}={value}")]
    shown = run("inspect", f"csv:{table}", *options, "--json")
    assert jsonio.loads(shown.stdout.splitlines()[-1])["counts"]["kept"] == 20
    build(tmp_path / "typed", f"csv:{table}", *options)
    assert len(ids_of(tmp_path / "typed")) == 20
    pairs = ", ".join(f'{key} = "{value}"' for key, value in columns.items())
    recipe = tmp_path / "csv.toml"
    recipe.write_text(
        f'[[source]]\ncorpus = "csv"\nplace = "{table}"\noptions = {{ {pairs} }}\n', "utf-8"
    )
    build(tmp_path / "built", "--recipe", recipe)
    assert len(ids_of(tmp_path / "built")) == 20
    recipe.write_text('[[source]]\ncorpus = "csv"\nplace = "x"\noptions = { ids = "a" }\n', "utf-8")
    assert "unknown option 'ids'" in refused("--recipe", recipe, "--out", tmp_path / "x")
    assert "no SOURCE" in refused("--recipe", recipe, "--option", "id=a")
    assert "key=value" in refused(f"csv:{table}", "--option", "id")


def test_wrong_columns_are_told_with_those_that_are_there(tmp_path: Path) -> None:
    table = tmp_path / "tickets.csv"
    table.write_text("ticket,sender,body\n1,cust,hi\n1,us,well\n", "utf-8")
    told = io.StringIO()
    with redirect_stderr(told):
        assert invoke(["data", "inspect", f"csv:{table}"]) == 2
    assert "the columns are ticket, sender, body" in told.getvalue()
    assert "--option" in told.getvalue()
    assert "missing_keys" in refused(f"csv:{table}", "--out", tmp_path / "x")
    (line, _) = jsonio.read_jsonl(tmp_path / "x" / "rejects.jsonl")
    assert line.value["detail"] == "id, role, text; the columns are ticket, sender, body"


def test_nothing_kept_is_an_error_in_any_format(tmp_path: Path) -> None:
    for row in ({"answer": 42}, {"id": "a", "turns": [AGENT]}):
        source = write_rows(tmp_path / "logs.jsonl", [row])
        told = io.StringIO()
        with redirect_stderr(told):
            assert invoke(["data", "inspect", str(source)]) == 2
        assert "logs.jsonl:1: no_" in told.getvalue()


def test_a_region_is_a_country(tmp_path: Path, chats: Path) -> None:
    found = build(tmp_path / "x", chats, "--region", "de")
    assert found["settings"]["region"] == "DE"
    assert "no country 'Germany'" in refused(chats, "--out", tmp_path / "y", "--region", "Germany")


def test_a_repeat_says_so(tmp_path: Path, chats: Path) -> None:
    assert build(tmp_path / "x", chats)["already_built"] is False
    assert build(tmp_path / "x", chats)["already_built"] is True
    shown = run("build", chats, "--out", tmp_path / "x")
    assert "already built" in shown.stdout


def test_much_overlap_is_told(tmp_path: Path) -> None:
    rows = [chat(n) for n in range(60)]
    for row in rows[:30]:
        row["turns"][2]["text"] = "could you please tell me when the next bus leaves"
    place = write_rows(tmp_path / "logs.jsonl", rows)
    shown = run("build", place, "--out", tmp_path / "x", "--quiet")
    assert "training dialogues are left out" in shown.stdout
    assert "apart=false" in shown.stdout
    shown = run("build", place, "--out", tmp_path / "y", "--quiet", "--set", "apart=false")
    assert "apart=false" not in shown.stdout


def test_a_deny_list_is_made_and_used(tmp_path: Path, chats: Path) -> None:
    few = write_rows(tmp_path / "few.jsonl", [chat(2)])
    shown = run("fingerprint", few, "--out", tmp_path / "deny.txt", "--json")
    assert jsonio.loads(shown.stdout.splitlines()[-1])["fingerprints"] == 2
    build(tmp_path / "built", chats, "--deny", tmp_path / "deny.txt")
    assert ids_of(tmp_path / "built") == {f"c{n}" for n in range(40)} - {"c2"}
