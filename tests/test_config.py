"""Configs: precedence, unknown keys with file and line, typed values, variables, secrets."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest

from mimesim import config
from mimesim.config.ranges import COUNT, SHARE, Range, check_ranges
from mimesim.errors import ConfigError


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Sampling:
    temperature: float = 1.0
    top_k: int | None = None


@dataclass(frozen=True)
class Agent:
    name: str = "a"


@dataclass(frozen=True)
class Config:
    model: str = "m"
    steps: int = 3
    rate: float = 0.5
    fast: bool = False
    color: Color = Color.RED
    mode: Literal["on", "off"] = "off"
    data: Path | None = None
    tags: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    agents: tuple[Agent, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    api_key: str | None = None

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"'steps' cannot be {self.steps}", expected="1 or more")


def write(folder: Path, text: str, name: str = "c.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(
    *files: Path, overrides: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Config:
    return config.load(Config, files, overrides=overrides, env=env or {})


def test_defaults_files_environment_overrides_in_this_order(tmp_path: Path) -> None:
    one = write(
        tmp_path, "steps = 10\nrate = 0.1\nmodel = 'one'\n[sampling]\ntop_k = 5\n", "1.toml"
    )
    two = write(tmp_path, "steps = 20\n[sampling]\ntemperature = 0\n", "2.toml")
    env = {"MIMESIM__STEPS": "30", "MIMESIM__SAMPLING__TOP_K": "7", "OTHER": "1"}
    assert load(one, two) == Config("one", 20, 0.1, sampling=Sampling(0.0, 5))
    assert load(one, two, env=env).steps == 30
    built = load(one, two, env=env, overrides=("steps=40", "sampling.temperature=0.7"))
    assert (built.steps, built.sampling) == (40, Sampling(0.7, 7))


def test_overrides_take_toml_values_and_plain_text(tmp_path: Path) -> None:
    built = load(
        overrides=(
            "model=scripted:eager",
            "tags=['a', 'b']",
            "options.x={y = 1}",
            "fast=true",
            "color=blue",
            "mode=on",
            "sampling.top_k=none",
            "rate=1e-5",
        )
    )
    assert built.model == "scripted:eager"
    assert built.tags == ("a", "b")
    assert built.options == {"x": {"y": 1}}
    assert (built.fast, built.color, built.mode, built.rate) == (True, Color.BLUE, "on", 1e-5)
    assert load(overrides=("model=7",)).model == "7"


def test_lists_are_reached_by_index(tmp_path: Path) -> None:
    file = write(tmp_path, "[[agents]]\nname = 'x'\n[[agents]]\nname = 'y'\n")
    assert load(file, overrides=("agents.1.name=z",)).agents == (Agent("x"), Agent("z"))
    with pytest.raises(ConfigError, match="no list entry '5'"):
        load(file, overrides=("agents.5.name=z",))


def test_an_unknown_key_names_file_line_key_and_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path, "steps = 1\n\n[sampling]\n# a comment\ntemprature = 1\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    text = str(caught.value)
    assert text.startswith(f"{file}:5: unknown key 'sampling.temprature'")
    assert "did you mean 'temperature'" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[sampling]\ntop_k = 1\n[samplign]\ntop_k = 1\n", 3),
        ("steps = 1\nsampling.top_q = 3\n", 2),
        ("agents = [{ name = 'x' }, { nam = 'y' }]\n", 1),
    ],
)
def test_lines_are_found_in_every_shape(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    assert caught.value.where == f"{tmp_path / 'c.toml'}:{line}"


def test_lines_are_found_in_json_too(tmp_path: Path) -> None:
    file = write(tmp_path, '{\n "steps": 2,\n "sampling": {\n  "top_q": 3\n }\n}\n', "c.json")
    with pytest.raises(ConfigError, match=r"c\.json:4: unknown key 'sampling.top_q'"):
        load(file)


def test_all_problems_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, "stepz = 1\nrate = 'much'\nfast = 'yes'\ncolor = 'pink'\n")
    found = [str(problem) for problem in config.check(Config, [file], env={})]
    assert [text.split(":")[1] for text in found] == ["1", "2", "3", "4"]
    assert "expected one of 'red', 'blue'" in found[3]
    with pytest.raises(ConfigError, match="and 3 more"):
        load(file)


def test_keys_with_x_are_the_authors_own(tmp_path: Path) -> None:
    assert load(write(tmp_path, "x-note = 'mine'\n[x-more]\na = 1\n")) == Config()


@pytest.mark.parametrize(
    "text",
    [
        "model = 7\n",
        "model = true\n",
        "steps = 1.5\n",
        "steps = true\n",
        "tags = 'a'\n",
        "rate = []\n",
    ],
)
def test_values_of_another_type_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=text.split()[0]):
        load(write(tmp_path, text))


def test_numbers_given_as_strings_are_converted(tmp_path: Path) -> None:
    built = load(write(tmp_path, "rate = '1e-5'\nsteps = '12'\n[weights]\na = 1\n"))
    assert (built.rate, built.steps, built.weights) == (1e-5, 12, {"a": 1.0})


def test_a_wrong_combination_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'steps' cannot be 0"):
        load(write(tmp_path, "steps = 0\n"))


def test_variables_come_from_the_environment_and_dotenv(tmp_path: Path) -> None:
    file = write(tmp_path, "model = '${A}-${B:-two}'\napi_key = '${KEY}'\n")
    (tmp_path / ".env").write_text("A=from-file\nexport KEY='sk-1'\n# note\n")
    assert load(file).model == "from-file-two"
    assert load(file, env={"A": "real"}).model == "real-two"
    assert load(file).api_key == "sk-1"
    (tmp_path / ".env").unlink()
    with pytest.raises(ConfigError, match=r"c\.toml:1: key 'model'.*'A' is not set"):
        load(file)


def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    assert load(write(tmp_path, "data = 'tasks.jsonl'\n")).data == tmp_path / "tasks.jsonl"
    assert load(overrides=("data=tasks.jsonl",)).data == Path("tasks.jsonl")


def test_secrets_are_not_dumped(tmp_path: Path) -> None:
    text = (
        "api_key = 'sk-test-SECRET123'\nmodel = 'openai:m@https://user:pw@host/v1'\n"
        "[options]\nauth_token = 'SECRET123'\nmax_tokens = 5\n"
    )
    built = load(write(tmp_path, text))
    dumped = config.dump(built)
    assert "SECRET123" not in str(dumped)
    assert "pw@" not in str(dumped)
    assert dumped["options"] == {"auth_token": "***", "max_tokens": 5}
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, "[[api_key]]\nx = 'SECRET123'\n"))
    assert "SECRET123" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, "api_key = 123456789\n"))
    assert "123456789" not in str(caught.value)


def test_a_dump_is_an_input_and_the_digest_names_it(tmp_path: Path) -> None:
    from mimesim import jsonio

    built = load(overrides=("steps=9", "agents=[{name='q'}]", "sampling.top_k=2"))
    file = tmp_path / "dump.json"
    jsonio.write_json(file, config.dump(built))
    assert load(file) == built
    assert config.digest(load(file)) == config.digest(built) != config.digest(Config())


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("c.toml", "a = \n", "not a valid TOML file"),
        ("c.toml", "a = 1\na = 2\n", "not a valid TOML file"),
        ("c.json", "{", "not a valid JSON file"),
        ("c.json", "[1]", "does not hold a table"),
        ("c.ini", "", "unknown config format"),
    ],
)
def test_damaged_files_are_one_line(tmp_path: Path, name: str, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load(write(tmp_path, text, name))
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "absent.toml")


def test_yaml_needs_pyyaml_and_refuses_its_traps(tmp_path: Path) -> None:
    """C-SEC-03 among others: a tag that would call a function is no value."""
    file = write(tmp_path, "rate: 1e-5\nmodel: no\n", "c.yaml")
    if importlib.util.find_spec("yaml") is None:
        with pytest.raises(ConfigError, match="PyYAML"):
            load(file)
        return
    with pytest.raises(ConfigError, match="quotes"):
        load(file)
    assert load(write(tmp_path, "rate: 1e-5\n", "c.yaml")).rate == 1e-5
    with pytest.raises(ConfigError, match=r"c\.yaml:3: the key 'steps' stands twice"):
        load(write(tmp_path, "steps: 1\nrate: 2\nsteps: 3\n", "c.yaml"))
    with pytest.raises(ConfigError, match="not a valid YAML"):
        load(write(tmp_path, "model: !!python/object/apply:os.getcwd []\n", "c.yaml"))


@pytest.mark.parametrize("text", ["steps", "=3"])
def test_an_override_without_key_and_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="key=value"):
        load(overrides=(text,))


@dataclass(frozen=True)
class Numbers:
    count: int = 1
    share: float = 0.5
    span: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_ranges(self, COUNT, "count")
        check_ranges(self, SHARE, "share")


@dataclass(frozen=True)
class Outer:
    inner: Numbers = field(default_factory=Numbers)
    path: Path | None = None
    name: str = "n"

    def __post_init__(self) -> None:
        check_ranges(self, Range(0, 9), "inner.count")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("inner.count=0", "--set inner.count: 'count' cannot be 0; expected 1 or more"),
        ("inner.count=10", "--set inner.count: 'inner.count' cannot be 10; expected 0 to 9"),
        ("inner.share=1.5", "--set inner.share: 'share' cannot be 1.5; expected 0 to 1"),
        ("inner.share=nan", "'inner.share' cannot be nan; expected a number"),
        ("inner.share=inf", "'inner.share' cannot be inf; expected a number"),
        ("inner.span=[0.2]", "'inner.span' has 1 entries; expected a list of 2"),
        ("inner.span=[0.2, 'x']", "'inner.span.1' cannot be 'x'"),
    ],
)
def test_numbers_out_of_range_are_told_where_they_were_set(value: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(Outer, overrides=["name=first", value])
    assert told in str(caught.value)


def test_a_complaint_points_at_the_line_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('name = "x"\n\n[inner]\nshare = 0.1\ncount = -3\n')
    with pytest.raises(ConfigError, match=r"c\.toml:5: 'count' cannot be -3"):
        config.load(Outer, [file])


def test_flags_are_values_and_never_read_as_toml() -> None:
    flags = [config.Flag("--name", "name", "[1, 2"), config.Flag("--path", "path", "7")]
    made = config.load(Outer, overrides=["name=other"], flags=flags)
    assert (made.name, made.path) == ("[1, 2", Path("7"))
    with pytest.raises(ConfigError, match="--count: 'count' cannot be 0"):
        config.load(Outer, flags=[config.Flag("--count", "inner.count", 0)])
    assert config.load(Outer, flags=[config.Flag("--count", "inner.count", None)]) == Outer()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"countt": 1}, "agent 'x': unknown key 'countt' (did you mean 'count'?)"),
        ({"count": "many"}, "agent 'x': 'count' cannot be 'many'; expected a whole number"),
        ({"count": 0}, "agent 'x': 'count' cannot be 0"),
        ({"count": {"a": 1}}, "agent 'x': 'count' is a table"),
    ],
)
def test_options_are_checked_like_a_file(options: dict[str, Any], told: str) -> None:
    assert config.from_options(Numbers, {"count": 3}, where="agent 'x'") == Numbers(3)
    assert config.from_options(Numbers, None, where="agent 'x'") == Numbers()
    with pytest.raises(ConfigError) as caught:
        config.from_options(Numbers, options, where="agent 'x'")
    assert told in str(caught.value)


def test_logins_are_removed_from_any_url() -> None:
    for login in ("u:p", "u:p@ss", "u:p/w", "token"):
        assert (
            config.redact(f"model:openai:m@http://{login}@h/v1") == "model:openai:m@http://***@h/v1"
        )
    for plain in ("openai:m@http://h:1/v1", '["http://h:1/v1","openai:m@http://h/v1"]'):
        assert config.redact(plain) == plain
