"""Frozen users and judges: who they are is written down, compared on going on and at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import EnvironmentFault
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.train.agent import BatchLog, train_agent
from mimesim.train.frozen import FILE, Frozen, fingerprint_of
from mimesim.train.warmstart import vocabulary
from mimesim.users.load import make_user
from mimesim.users.mixture import UserShare, make_mixture
from tests import tiny
from tests.support.agent_runs import config
from tests.support.rl_runs import save_start

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_start(folder, build_tokenizer(vocabulary()), SMALL)
    return folder


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The folder of a user that is a model."""
    tiny.talker().save_pretrained(tmp_path / "person")
    tiny.tokenizer().save_pretrained(tmp_path / "person")
    return tmp_path / "person"


def stir(folder: Path) -> bytes:
    """Change one bit of the weights; return the file as it was."""
    weights = folder / "model.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    return before


def test_what_a_fingerprint_tells_apart(person: Path) -> None:
    options = {"model_options": {"api_key_env": ""}}
    names: dict[str, dict[str, Any] | None] = {
        f"roleplay:hf:{person}": None,
        "roleplay:openai:m@http://127.0.0.1:9/v1": options,
        "roleplay:openai:n@http://127.0.0.1:9/v1": options,
        "roleplay:openai:m@http://127.0.0.2:9/v1": options,
        "trained:openai:m@http://127.0.0.1:9/v1": options,
        "scripted:neutral": None,
    }
    users = {name: make_user(name, options=given) for name, given in names.items()}
    found = {name: fingerprint_of(user) for name, user in users.items()}
    texts = [jsonio.dumps(one) for one in found.values()]
    assert len(set(texts)) == len(texts)
    assert [name for name, one in found.items() if "weights" in one] == [f"roleplay:hf:{person}"]
    assert {"endpoint", "model", "prompt", "sampling"} <= set(
        found["trained:openai:m@http://127.0.0.1:9/v1"]
    )
    stir(person)
    again = fingerprint_of(users[f"roleplay:hf:{person}"])
    before = found[f"roleplay:hf:{person}"]
    assert {key for key in before if before[key] != again[key]} == {"weights"}
    for user in users.values():
        asyncio.run(user.aclose())


def test_all_of_a_mixture_are_known(tmp_path: Path) -> None:
    shares = (UserShare("scripted:B3"), UserShare("scripted:neutral"))
    frozen = Frozen(tmp_path, [make_mixture(shares, 1), make_user("scripted:B3")])
    frozen.begin()
    assert set(frozen.record) == {"scripted:B3", "scripted:neutral"}
    other = Frozen(tmp_path, [make_user("scripted:B3"), make_user("scripted:B4")])
    with pytest.raises(EnvironmentFault, match="scripted:B4 is not who it was"):
        other.begin()
    assert set(jsonio.read_object(tmp_path / FILE)) == {"scripted:B3", "scripted:neutral"}


def test_a_user_that_changed_is_one_line_and_nothing_is_lost(
    start: Path, tmp_path: Path, person: Path
) -> None:
    user = f"roleplay:hf:{person}"
    quiet = UserShare(user, options={"max_tokens": 4})
    small = {"prompts": 1, "group": 2, "minibatches": 1, "policy": {"max_tokens": 4}}
    run = config(start, tmp_path / "out", users=(quiet,), batches=3, csd={"alpha": 0.0}, **small)
    kept: list[bytes] = []

    def interrupt(log: BatchLog) -> None:
        if log.batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_agent(run, on_batch=interrupt)
    before = stir(person)
    with pytest.raises(EnvironmentFault, match=r"is not who it was: weights '\w+' became") as told:
        train_agent(run)
    assert "\n" not in str(told.value)
    (person / "model.safetensors").write_bytes(before)

    heard: list[int] = []

    def change(log: BatchLog) -> None:
        heard.append(log.batch)
        if log.batch == 3:
            kept.append(stir(person))

    with pytest.raises(EnvironmentFault, match="weights and checkpoints are kept"):
        train_agent(run, on_batch=change)
    assert heard == [2, 3], "it went on where it stopped"
    assert (run.out / "policy" / "model.safetensors").is_file()
    assert not (run.out / "agent.json").exists()
    (person / "model.safetensors").write_bytes(kept[0])
    result = train_agent(run)
    assert [row["batch"] for row in result["curve"]] == [1, 2, 3]
    assert result["frozen"] == jsonio.read_object(run.out / FILE)
    assert list(result["frozen"]) == [user]
