"""Door names of models: what each gives, and one clear line for everything else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import pytest

from mimesim.errors import ConfigError, MissingExtraError, UnknownNameError, UsageError
from mimesim.models import load
from mimesim.models.cache import Cached
from mimesim.models.load import make_chat_model, make_token_model
from mimesim.models.scripted import Echo, Replay, Scripted


def test_scripted_names() -> None:
    assert isinstance(make_chat_model("scripted:echo"), Echo)
    assert isinstance(make_chat_model("scripted:replay", options={"turns": ["a"]}), Replay)
    replies = make_chat_model("scripted:replies", options={"replies": ["a"]})
    assert isinstance(replies, Scripted)
    assert replies.identity.name == "scripted:replies"


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("openai:m@http://127.0.0.1:1/v1", "m", "http://127.0.0.1:1/v1"),
        ("openai:org/m:free@https://h.example/v1/", "org/m:free", "https://h.example/v1"),
        ("openai:m@2026-01@https://h.example", "m@2026-01", "https://h.example"),
        ("openai:m@https://u:pw@h.example/v1", "m", "https://h.example/v1"),
    ],
)
def test_endpoint_names(name: str, model: str, url: str) -> None:
    identity = make_chat_model(name).identity
    assert (identity.model, identity.name) == (model, f"openai:{model}@{url}")


@pytest.mark.parametrize(
    ("name", "options", "kind", "told"),
    [
        ("opena:m@http://h/v1", {}, UnknownNameError, "did you mean 'openai'"),
        ("gpt-5", {}, UnknownNameError, "embedded, hf, openai, scripted"),
        ("", {}, UnknownNameError, "unknown model ''"),
        ("openai", {}, UsageError, "incomplete"),
        ("openai:", {}, UsageError, "incomplete"),
        ("openai:m", {}, UsageError, "openai:<model>@<base_url>"),
        ("openai:@http://h/v1", {}, UsageError, "malformed"),
        ("openai:m@h/v1", {}, UsageError, "malformed"),
        ("hf:", {}, UsageError, "hf:<path or id>"),
        ("embedded:x", {}, UsageError, "'embedded' alone"),
        ("scripted:ecko", {}, UnknownNameError, "did you mean 'echo'"),
        ("scripted:echo", {"turns": []}, ConfigError, "unknown option 'turns'"),
        ("scripted:replay", {}, ConfigError, "a list of texts"),
        ("scripted:replay", {"turns": "abc"}, ConfigError, "a list of texts"),
        ("openai:m@http://h/v1", {"timout_s": 1}, ConfigError, "did you mean 'timeout_s'"),
        ("scripted:echo", {"cache": 3}, ConfigError, "a path"),
        ("no.such.module:make", {}, UnknownNameError, "cannot be loaded"),
    ],
)
def test_wrong_names_are_one_clear_line(
    name: str, options: dict[str, Any], kind: type[UsageError], told: str
) -> None:
    with pytest.raises(kind) as caught:
        make_chat_model(name, options=options)
    line = str(caught.value)
    assert told in line
    assert "\n" not in line
    assert caught.value.exit_code == 2


def test_a_password_in_a_malformed_name_is_not_shown() -> None:
    for name in ("openai:m@://user:pw@h/v1", "opnai:m@http://user:pw@h/v1"):
        with pytest.raises(UsageError) as caught:
            make_chat_model(name)
        assert "pw" not in str(caught.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "torch" else found(name, *a)
    )
    for name in ("embedded", "hf:some/model"):
        with pytest.raises(MissingExtraError, match=r"mimesim\[train\]"):
            make_chat_model(name)
    with pytest.raises(MissingExtraError, match=r"mimesim\[train\]"):
        make_token_model("policy:out/x")


def test_token_model_names() -> None:
    with pytest.raises(UnknownNameError, match="unknown token model 'embedded'"):
        make_token_model("embedded")
    with pytest.raises(UsageError, match="policy:<path>"):
        make_token_model("policy:")
    with pytest.raises(ConfigError, match="'tokenizer'"):
        make_token_model("openai:m@http://127.0.0.1:1/v1")


def test_a_cache_wraps_any_kind(tmp_path: Any) -> None:
    model = make_chat_model("scripted:echo", options={"cache": str(tmp_path / "a.db")})
    assert isinstance(model, Cached)
    assert model.identity.name == "scripted:echo"
    model._store.close()


def test_every_built_in_name_points_at_something_importable() -> None:
    for registry in (load.CHAT, load.TOKEN):
        for name in registry.builtin:
            assert callable(registry.load(name)), name


def test_loading_names_loads_neither_torch_nor_a_network_client() -> None:
    code = (
        "import sys, mimesim.models.load as load\n"
        "load.make_chat_model('scripted:echo')\n"
        "heavy = {'torch', 'transformers', 'openai', 'httpx', 'httpx2', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
