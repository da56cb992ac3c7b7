"""`mimesim view`: show stored episodes in the terminal; the private side only when asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, in_words, say, stdout
from mimesim.dialogue.episode import Episode, Turn, public_copy
from mimesim.dialogue.types import Role
from mimesim.errors import UsageError


def command(
    path: Annotated[Path, typer.Argument(help="Episode file or run folder.")],
    failed: Annotated[
        bool, typer.Option("--failed", help="Only without success, or not counted.")
    ] = False,
    stop: Annotated[str | None, typer.Option(help="Only this stop reason.")] = None,
    status: Annotated[str | None, typer.Option(help="Only this status.")] = None,
    guard: Annotated[str | None, typer.Option(help="Only where this guard fired.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Only ids that begin so.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Episodes to show.")] = 5,
    private: Annotated[
        bool, typer.Option("--private", help="Show the user's private side, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Show stored episodes."""
    from mimesim.rollout.store import read_episodes

    _known(stop, status)
    everything = read_episodes(path)
    chosen = [
        episode
        for episode in everything
        if (not failed or not (episode.counted and episode.outcome.success))
        and (stop is None or episode.stop.reason == stop)
        and (status is None or episode.outcome.status == status)
        and (guard is None or any(event.get("guard") == guard for event in episode.guards))
        and (id_ is None or episode.id.startswith(id_))
    ]
    if json:
        shown = [episode.to_json() for episode in chosen[:limit]]
        emit_json(
            {
                "matching": len(chosen),
                "all": len(everything),
                "episodes": shown if private else [public_copy(value) for value in shown],
            }
        )
        return
    for episode in chosen[:limit]:
        _show(episode, private=private)
    say(f"{min(limit, len(chosen))} shown, {len(chosen)} of {len(everything)} match")


def _known(stop: str | None, status: str | None) -> None:
    """Refuse a filter that can match nothing, naming the nearest value."""
    from mimesim.dialogue.stop import Status, StopReason
    from mimesim.registry import unknown_name

    for kind, value, known in (
        ("stop reason", stop, [reason.value for reason in StopReason]),
        ("status", status, [entry.value for entry in Status]),
    ):
        if value is not None and value not in known:
            raise unknown_name(kind, value, known)


def _show(episode: Episode, *, private: bool) -> None:
    out = stdout()
    if private and episode.private is None:
        raise UsageError(f"episode {episode.id} is a public copy", mend="leave --private out")
    out.print(f"── {episode.id}  task {episode.task.id}  trial {episode.trial}", style="bold")
    user = episode.user.name if episode.user else "-"
    say(f"agent {episode.agent.name}   user {user}")
    hidden = _private_lines(episode) if private else {}
    if private and episode.private and episode.private.get("goal"):
        out.print(f"[goal] {episode.private['goal']}", style="dim")
    for turn in episode.turns:
        for text in hidden.get(turn.i, ()):
            out.print(text, style="dim italic")
        out.print(_line(turn), style="bold" if turn.role is Role.USER else "")
    for text in hidden.get(len(episode.turns), ()):
        out.print(text, style="dim italic")
    outcome = episode.outcome
    say(
        f"-> {outcome.status.value}, {episode.stop.reason.value} by {episode.stop.by.value}"
        f"{': ' + episode.stop.detail if episode.stop.detail else ''}; "
        f"success {in_words(outcome.success)}, reward {in_words(outcome.reward)}\n"
    )


def _line(turn: Turn) -> str:
    said = [turn.content] if turn.content else []
    said += [f"[{call.name} {call.arguments}]" for call in turn.tool_calls]
    mark = "" if turn.delivered else " (not delivered)"
    return f"{turn.role.value:>5}{mark}: {' '.join(said)}"


def _private_lines(episode: Episode) -> dict[int, list[str]]:
    """Return message number -> private lines that belong to it."""
    found: dict[int, list[str]] = {}
    private: Any = episode.private or {}
    entries: Iterable[tuple[str, Any]] = [
        *(("user thinks", entry) for entry in private.get("thoughts", ())),
        *(("agent thinks", entry) for entry in private.get("agent_reasoning", ())),
    ]
    for name, entry in entries:
        if entry.get("text"):
            found.setdefault(int(entry["turn"]), []).append(f"      ({name}: {entry['text']})")
    return found
