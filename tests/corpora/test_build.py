"""A whole build on invented conversations: splits, duplicates, contamination, mixes, resuming."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora import built, reading
from mimesim.corpora.build import BuildConfig, SourceConfig, build
from mimesim.corpora.load import open_corpus
from mimesim.errors import ConfigError, DataError, UnknownNameError, UsageError
from tests.support.chats import chat, contents, ids_of, rows_of, say, sentence, write_rows

pytest.importorskip("datasketch")
pytest.importorskip("phonenumbers")


_BUILD = [sys.executable, "-m", "mimesim", "data", "build"]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "logs.jsonl", (chat(n) for n in range(100)))


def config(tmp_path: Path, *places: Path, **more: Any) -> BuildConfig:
    sources = tuple(SourceConfig(corpus="own", place=str(place)) for place in places)
    return BuildConfig(**{"out": tmp_path / "built", "source": sources, **more})


def reasons(out: Path) -> list[tuple[str, str]]:
    return [
        (Path(line.value["where"]).name, line.value["reason"])
        for line in jsonio.read_jsonl(out / built.REJECTS)
    ]


def test_every_dialogue_is_in_one_part(tmp_path: Path, logs: Path) -> None:
    cfg = config(tmp_path, logs)
    found = build(cfg)
    sizes = {part: figures["dialogues"] for part, figures in found["files"].items()}
    assert sizes == {"train": 80, "validation": 10, "test": 10}
    assert ids_of(cfg.out) == {f"c{n}" for n in range(100)}
    row = rows_of(cfg.out, "test")[0]
    assert (row["split"], row["source"], row["license"]) == ("test", "own", "own data")
    assert row["turns"] == chat(int(row["id"][1:]))["turns"]
    assert not (cfg.out / built.WORK).exists()


def test_people_do_not_part(tmp_path: Path) -> None:
    place = write_rows(
        tmp_path / "logs.jsonl", (chat(n, user_key=f"p{n // 4}") for n in range(120))
    )
    cfg = config(tmp_path, place)
    build(cfg)
    people = [
        {row["user_key"] for row in rows_of(cfg.out, part)}
        for part in ("train", "validation", "test")
    ]
    assert [len(found) for found in people] == [24, 3, 3]
    assert len(set.union(*people)) == 30
    assert "p1" not in set.union(*people), "a person is unnamed"


def test_the_same_bytes_whatever_the_hash_seed(tmp_path: Path, logs: Path) -> None:
    for name in ("1", "2"):
        subprocess.run(
            [*_BUILD, str(logs), "--quiet", "--out", str(tmp_path / name)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": name},
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_finished_build_is_not_done_again(tmp_path: Path, logs: Path) -> None:
    cfg = config(tmp_path, logs)
    first = build(cfg)
    time = (cfg.out / "train.jsonl").stat().st_mtime_ns
    assert build(cfg) == first
    assert (cfg.out / "train.jsonl").stat().st_mtime_ns == time
    with pytest.raises(UsageError, match="other settings"):
        build(replace(cfg, seed=1))
    write_rows(logs, [chat(100)])
    with pytest.raises(UsageError, match="or of other files"):
        build(cfg)
    assert build(replace(cfg, seed=1, resume=False))["settings"]["seed"] == 1


_KILLED = """
import os, signal, sys
from pathlib import Path
from mimesim.corpora import reading
from mimesim.corpora.build import BuildConfig, SourceConfig, build
reading._EVERY = 20
def tell(corpus, state):
    if state.records >= 60:
        os.kill(os.getpid(), signal.SIGKILL)
source = SourceConfig(corpus="own", place=sys.argv[1])
build(BuildConfig(out=Path(sys.argv[2]), source=(source,)), on_progress=tell)
"""


def test_a_killed_build_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[Any] = [chat(n % 90, turns=4 + n % 3) for n in range(150)]
    rows[10], rows[70] = {"turns": 5}, "text"
    place = write_rows(tmp_path / "logs.jsonl", rows)
    cfg = config(tmp_path, place, max_rejects=1.0)
    whole = config(tmp_path, place, max_rejects=1.0, out=tmp_path / "whole")
    build(whole)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(place), str(cfg.out)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not built.is_built(cfg.out)
    read: list[int] = []
    monkeypatch.setattr(reading, "_EVERY", 20)
    build(cfg, on_progress=lambda corpus, state: read.append(state.records))
    assert read == [80, 100, 120, 140, 150], "it goes on from its last checkpoint"
    assert contents(cfg.out) == contents(whole.out)


def test_unknown_tokens_are_null_and_no_lock_stays(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", (chat(n) for n in range(10)))
    cfg = config(tmp_path, place)
    train = build(cfg)["sources"][0]["parts"]["train"]
    assert (train["tokens"], train["user_tokens"]) == (None, None)
    assert train["words"]
    shown = jsonio.read_json(cfg.out / built.CARD)["totals"]["train"]
    assert (shown["tokens"], shown["words"]) == (None, train["words"])
    assert not list(cfg.out.glob(".*"))


def test_duplicates_and_damage_are_noted_by_line(tmp_path: Path) -> None:
    long = sentence("long", words=40)
    place = write_rows(
        tmp_path / "logs.jsonl",
        [
            say(long, "ok", name="a"),
            say(long.upper(), "OK.", name="b"),
            say(f"{long} now", "fine", name="c"),
            say("other", "ok", name="a"),
            {"id": "d", "turns": [{"text": "no role"}]},
            say("alone", name="e"),
            say("hi", "", "there", "ok", name="f"),
            say("hi", "", "there", "ok", name="f"),
        ],
    )
    cfg = config(tmp_path, place, max_rejects=0.5)
    counts = build(cfg)["sources"][0]["counts"]
    assert reasons(cfg.out) == [
        ("logs.jsonl:2", "duplicate"),
        ("logs.jsonl:3", "near_duplicate"),
        ("logs.jsonl:4", "duplicate_id"),
        ("logs.jsonl:5", "missing_role"),
        ("logs.jsonl:6", "one_sided"),
        ("logs.jsonl:8", "duplicate"),
    ]
    assert ids_of(cfg.out) == {"a", "f"}
    assert (counts["records"], counts["kept"], counts["empty_turns"]) == (8, 2, 1)
    assert long.split()[0] not in (cfg.out / built.REJECTS).read_text("utf-8")


def test_a_train_dialogue_that_shares_a_text_with_a_held_out_one_leaves(tmp_path: Path) -> None:
    shared = "could you please tell me when the next bus leaves"
    rows = [chat(n) for n in range(60)]
    for row in rows[:30]:
        row["turns"][2]["text"] = shared
    place = write_rows(tmp_path / "logs.jsonl", rows)
    cfg = config(tmp_path, place, validation=0.2, test=0.2)
    build(cfg)
    out = {name for _, name in reasons(cfg.out)}
    assert out == {"overlap"}
    for line in jsonio.read_jsonl(cfg.out / built.REJECTS):
        number = int(line.value["where"].rpartition(":")[2]) - 1
        partner = re.search(r"with own:(c\d+) \(.*logs\.jsonl:(\d+)\)", line.value["detail"])
        assert f":c{number} shares" in line.value["detail"]
        assert partner is not None
        assert partner.group(1) == f"c{int(partner.group(2)) - 1}"
        assert partner.group(1) in ids_of(cfg.out, "validation") | ids_of(cfg.out, "test")
    sharing = {f"c{n}" for n in range(30)}
    assert not sharing & ids_of(cfg.out, "train")
    assert sharing & ids_of(cfg.out, "test")
    apart = replace(cfg, out=tmp_path / "all", apart=False)
    build(apart)
    assert ids_of(apart.out) == {f"c{n}" for n in range(60)}


def test_shared_texts_of_two_corpora_are_counted(tmp_path: Path) -> None:
    text = "what would you like to know about the old harbor"
    one = write_rows(tmp_path / "one.jsonl", [say(text, "hm", "yes", name="a"), chat(1)])
    other = write_rows(
        tmp_path / "two.jsonl",
        [
            {"messages": [{"role": "user", "content": t}, {"role": "assistant", "content": "so"}]}
            for t in (text, "no")
        ],
    )
    cfg = config(tmp_path, one)
    sources = (*cfg.source, SourceConfig(corpus="openai-messages", place=str(other)))
    found = build(replace(cfg, source=sources, validation=0.0, test=0.0))
    assert found["shared_texts"] == {"openai-messages & own": 1}


def test_the_deny_list_keeps_texts_out(tmp_path: Path, logs: Path) -> None:
    from mimesim.corpora.deny import write_deny_list

    secret = write_rows(tmp_path / "secret.jsonl", [chat(n) for n in (3, 7)])
    made = write_deny_list([str(secret)], tmp_path / "deny.txt")
    assert made["fingerprints"] == 4
    cfg = config(tmp_path, logs, deny=(tmp_path / "deny.txt",))
    build(cfg)
    assert ids_of(cfg.out) == {f"c{n}" for n in range(100)} - {"c3", "c7"}
    assert reasons(cfg.out) == [("logs.jsonl:4", "denied"), ("logs.jsonl:8", "denied")]


def test_ratios(tmp_path: Path) -> None:
    places = [
        write_rows(tmp_path / f"{start}.jsonl", (chat(start + n) for n in range(50)))
        for start in (0, 1000)
    ]
    cfg = config(tmp_path, *places, validation=0.0, test=0.0)
    shares = (3.0, 1.0)
    sources = tuple(
        replace(source, share=share) for source, share in zip(cfg.source, shares, strict=True)
    )
    found = build(replace(cfg, source=sources))
    taken = [source["parts"]["train"]["dialogues"] for source in found["sources"]]
    assert taken == [50, 17]
    assert found["sources"][1]["counts"]["left_out_mixing"] == 33
    words = build(replace(cfg, source=sources, mix_by="words", out=tmp_path / "words"))
    by_words = [source["parts"]["train"]["user_words"] for source in words["sources"]]
    assert by_words[0] / by_words[1] == pytest.approx(3, rel=0.1)


def test_limits_of_a_source(tmp_path: Path, logs: Path) -> None:
    cfg = config(tmp_path, logs)
    few = replace(cfg, source=(replace(cfg.source[0], limit=7),))
    build(few)
    assert ids_of(cfg.out) == {f"c{n}" for n in range(7)}
    people = write_rows(tmp_path / "p.jsonl", (chat(n, user_key=f"p{n % 5}") for n in range(20)))
    one = replace(cfg, source=(replace(cfg.source[0], place=str(people), per_group=1),))
    build(replace(one, out=tmp_path / "one"))
    assert ids_of(tmp_path / "one") == {f"c{n}" for n in range(5)}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_built_folder_is_a_corpus(tmp_path: Path, logs: Path, kind: Any) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    cfg = config(tmp_path, logs, format=kind)
    build(cfg)
    corpus = open_corpus(str(cfg.out))
    assert len(corpus.dialogues) == 100
    assert {dialogue.split for dialogue in corpus.dialogues} == {"train", "validation", "test"}
    by_id = {dialogue.id: dialogue for dialogue in corpus.dialogues}
    assert [turn.text for turn in by_id["c5"].turns] == [t["text"] for t in chat(5)["turns"]]
    assert corpus.info.license == "own data"
    assert len(list(built.read_part(cfg.out, "test"))) == 10
    assert len(open_corpus(str(cfg.out), limit=3).dialogues) == 3
    with pytest.raises(DataError, match="no part 'dev'"):
        list(built.read_part(cfg.out, "dev"))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_cut_part_is_told_in_one_line(tmp_path: Path, logs: Path, kind: Any) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    cfg = config(tmp_path, logs, format=kind)
    build(cfg)
    part = cfg.out / f"train.{kind}"
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(DataError, match=rf"train\.{kind}"):
        open_corpus(str(cfg.out))


def test_too_much_damage_fails_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [chat(n) for n in range(8)] + [{"turns": 1}, "x"]
    cfg = config(tmp_path, write_rows(tmp_path / "logs.jsonl", rows))
    with pytest.raises(DataError, match=r"2 of 10 records of 'own'.*no_conversation 2") as caught:
        build(cfg)
    assert caught.value.exit_code == 2
    assert [where for where, _ in reasons(cfg.out)] == ["logs.jsonl:9", "logs.jsonl:10"]
    read: list[int] = []
    found = build(replace(cfg, max_rejects=0.2), on_progress=lambda _, s: read.append(s.records))
    assert found["files"]["train"]["dialogues"] == 6
    assert read == [], "nothing is read again"


def test_a_source_of_which_nothing_is_left(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [say("hello", name=str(n)) for n in range(3)])
    with pytest.raises(DataError, match="nothing of 'own' is left: one_sided 3"):
        build(config(tmp_path, place))


def test_folders_of_others_are_left_alone(tmp_path: Path, logs: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "train.jsonl").write_text("precious", "utf-8")
    with pytest.raises(UsageError, match="no build has written it"):
        build(config(tmp_path, logs, out=mine, resume=False))
    assert (mine / "train.jsonl").read_text("utf-8") == "precious"


@pytest.mark.parametrize(
    ("corpus", "why"),
    [("mirrorbench", "serves evaluation only"), ("tau-usi", "evaluation only|may not")],
)
def test_rights(tmp_path: Path, logs: Path, corpus: str, why: str) -> None:
    cfg = replace(config(tmp_path, logs), source=(SourceConfig(corpus=corpus, place=str(logs)),))
    with pytest.raises(UsageError, match=why) as caught:
        build(cfg)
    assert "--i-have-rights" in str(caught.value)
    assert not cfg.out.exists()
    found = build(replace(cfg, i_have_rights=True))
    assert found["files"]["train"]["dialogues"] == 80
    card = jsonio.read_json(cfg.out / built.CARD)
    assert any("rights were claimed" in text for text in card["warnings"])


def test_rows_that_forbid_training_themselves(tmp_path: Path) -> None:
    rows = [chat(n, training_allowed=("yes", "no")[n % 2]) for n in range(20)]
    cfg = config(tmp_path, write_rows(tmp_path / "logs.jsonl", rows))
    build(cfg)
    assert ids_of(cfg.out) == {f"c{n}" for n in range(0, 20, 2)}
    assert {name for _, name in reasons(cfg.out)} == {"no_training"}
    claimed = replace(cfg, i_have_rights=True, out=tmp_path / "claimed")
    build(claimed)
    allowed = {row["id"]: row["training_allowed"] for row in rows_of(claimed.out, "train")}
    assert {allowed[name] for name in allowed if int(name[1:]) % 2} == {"no"}


def test_contact_data_is_replaced_where_nobody_moderated(tmp_path: Path) -> None:
    text = "write to jo@mail.example please"
    place = write_rows(tmp_path / "logs.jsonl", [say(text, "ok", name="a")])
    cfg = config(tmp_path, place)
    counts = build(cfg)["sources"][0]["counts"]
    assert (counts["mails_masked"], counts["dialogues_scrubbed"]) == (1, 1)
    assert "jo@mail" not in "".join(value.decode() for value in contents(cfg.out).values())
    off = replace(cfg, pii="off", out=tmp_path / "off")
    build(off)
    assert rows_of(off.out, "train")[0]["turns"][0]["text"] == text


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"validation": 0.6, "test": 0.4}, "leave nothing to train on"),
        ({"near": 2.0}, "'near' cannot be 2.0"),
        ({"max_turns": -1}, "'max_turns'"),
        ({"source": ()}, "no source"),
    ],
)
def test_settings_that_make_no_build(tmp_path: Path, settings: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        build(config(tmp_path, **settings))


def test_unknown_sources(tmp_path: Path) -> None:
    for name in ("stra", "chat"):
        with pytest.raises(UnknownNameError):
            build(BuildConfig(out=tmp_path / "x", source=(SourceConfig(corpus=name, place="y"),)))
    with pytest.raises(DataError, match="no place for the corpus 'star'"):
        build(BuildConfig(out=tmp_path / "x", source=(SourceConfig(corpus="star"),)))
    with pytest.raises(DataError, match="file not found"):
        build(config(tmp_path, tmp_path / "none.jsonl"))
    assert not (tmp_path / "x").exists()


def test_lone_surrogates_and_deep_values_fail_no_build(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    deep: Any = 1
    for _ in range(700):
        deep = {"a": deep}
    odd = {"goal": "g\ud83d", "user_key": "u\udc00", "context": "\ud800", "x": "\udfff"}
    lines = [jsonio.dumps(chat(n)) for n in range(12)]
    lines += [f'{{"id": "deep", "turns": [], "outcome": {json.dumps(deep)}}}']
    lines += [jsonio.dumps(chat(12, **odd))]
    place = tmp_path / "logs.jsonl"
    place.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    for kind in ("jsonl", "parquet"):
        source = (SourceConfig(corpus="own", place=str(place)),)
        out = tmp_path / kind
        made = build(BuildConfig(out=out, source=source, format=kind, max_rejects=0.2))
        counts = made["sources"][0]["counts"]
        assert (counts["kept"], counts["left_out_too_deep"]) == (13, 1)
        assert counts["surrogates_replaced"] == 3
        (found,) = [d for d in open_corpus(str(out)).dialogues if d.id == "c12"]
        assert found.goal == "g\ufffd"


def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    place = tmp_path / "logs.jsonl"
    try:
        place.symlink_to("/proc/self/mem")  # opens, and fails on the first byte
        place.read_bytes()
    except OSError:
        pass
    else:
        pytest.skip("no such file on this system")
    if not place.is_file():
        pytest.skip("no such file on this system")
    source = (SourceConfig(corpus="own", place=str(place)),)
    with pytest.raises(DataError, match=r"logs\.jsonl: cannot read"):
        build(BuildConfig(out=tmp_path / "out", source=source))
