"""`mimesim serve`: a user behind an OpenAI-compatible endpoint, for other people's harnesses."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import note
from mimesim.errors import EnvironmentFault

_USER = "User to serve: a door name of `mimesim users list`, or name=door; repeatable."
_SYSTEM = "What a caller's system text is: passthrough (the user's whole prompt) or wrap (a goal)."
_DIALECT = "How callers read that the user leaves: plain, tau, tau2, verifiers, adk, collabllm, ..."
Files = Annotated[list[Path] | None, typer.Option("--config", help="Config file; repeatable.")]


def command(
    config: Files = None,
    user: Annotated[list[str] | None, typer.Option(help=_USER)] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8080,
    scenarios: Annotated[
        Path | None, typer.Option(help="Scenario file: whom callers meet who name nobody.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Root of all seeds.")] = None,
    roles: Annotated[
        str | None, typer.Option(help="Usual roles of a request: flipped or natural.")
    ] = None,
    system: Annotated[str | None, typer.Option(help=_SYSTEM)] = None,
    dialect: Annotated[str | None, typer.Option(help=_DIALECT)] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the callers' token; else MIMESIM_API_KEY.")
    ] = None,
    private_token_file: Annotated[
        Path | None, typer.Option(help="File with the token that opens an episode's thoughts.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let others in without a token.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds of one request.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", help="Replies in the making at once.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a config key: key=value, TOML values.")
    ] = None,
    log_text: Annotated[
        bool, typer.Option("--log-text", help="Log the public words of both sides.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log no requests.")] = False,
) -> None:
    """Serve a user: the caller's agent speaks, the user answers. SIGTERM and Ctrl-C end it.

    Left out: --user scripted:realistic --roles flipped --dialect plain. Further keys of --set:
    max_waiting, per_minute, max_body, max_messages, memory_chars, detect_loops and
    user_options.<setting>.
    """
    from mimesim import config as configs
    from mimesim.envs.conversation import read_scenarios
    from mimesim.server.local import run
    from mimesim.server.settings import ServeSettings

    flags = [
        configs.Flag("--seed", "seed", seed),
        configs.Flag("--roles", "roles", roles),
        configs.Flag("--system", "system", system),
        configs.Flag("--dialect", "dialect", dialect),
        configs.Flag("--timeout", "timeout_s", timeout),
        configs.Flag("--concurrency", "max_active", concurrency),
        configs.Flag("--log-text", "log_text", log_text or None),
    ]
    settings = configs.load(ServeSettings, config or (), overrides=set_ or (), flags=flags)
    people = [task.scenario for task in read_scenarios(scenarios)] if scenarios else ()
    settings = replace(
        settings,
        scenarios=tuple(people) or settings.scenarios,
        token=_secret(token_file, "MIMESIM_API_KEY") or settings.token,
        private_token=_secret(private_token_file, "MIMESIM_PRIVATE_KEY") or settings.private_token,
    )
    if insecure and not settings.token:
        note("warning: no token is asked for; whoever reaches this address can use the server")
    log, users = _Log(quiet=quiet), _named(user or ["scripted:realistic"])
    run(users, settings, host=host, port=port, insecure=insecure, log=log)
    note("stopped")


class _Log:
    """Writes one JSON line a request on stderr, plain ASCII."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, line: Mapping[str, Any]) -> None:
        from mimesim import jsonio

        if "serving" in line:
            note(f"serving at {line['serving']}; Ctrl-C ends it")
        elif not self._quiet:
            sys.stderr.write(jsonio.dumps(line, ascii_only=True) + "\n")
            sys.stderr.flush()


def _named(doors: list[str]) -> list[str] | dict[str, str]:
    """Return the users as they are, or all by name where one of them has a name."""
    pairs = [_pair(text) for text in doors]
    named = any(name for name, _ in pairs)
    return {name or door: door for name, door in pairs} if named else doors


def _pair(text: str) -> tuple[str, str]:
    name, sign, door = text.partition("=")
    plain = bool(sign) and name.replace("-", "").replace("_", "").isalnum()
    return (name, door) if plain else ("", text)


def _secret(file: Path | None, variable: str) -> str:
    """Return a token: from a file, else from the environment, else none."""
    if file is None:
        return os.environ.get(variable, "").strip()
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(
            f"cannot read the token: {type(error).__name__}", where=str(file)
        ) from error
    if not token:
        raise EnvironmentFault("no token in the file", where=str(file), expected="one line of text")
    return token
