"""Open Assistant: trees of messages by volunteers, whole or one message a row (Apache-2.0).

    {"message_tree_id", "tree_state", "prompt": {"message_id", "text", "role": "prompter", "lang",
     "deleted", "synthetic", "rank", "replies": […]}}
    {"message_id", "parent_id", "message_tree_id", "tree_state", "text", "role", …}

Rows, and normalized threads `oasst/<tree>/<n>`, are gathered by tree, so the texts of all rows of a
source stand in memory. Only trees that are ready for export are used; deleted and synthetic
messages go with everything under them. Of several replies the one of the best rank comes first,
then the one with the longest conversation under it.

A tree gives its first thread; with the option `threads = "all"`, every thread that adds a message
of a person. Such a thread starts at the first message that no thread before it had; what comes
earlier stands in `earlier`, so that no text of a person is learnt twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Record, Side, Unfit
from mimesim.corpora.formats.chats import fold, required
from mimesim.corpora.formats.languages import language_code
from mimesim.corpora.formats.normalized import SIDES, identity, is_normalized
from mimesim.errors import ConfigError

INFO = CorpusInfo(
    name="oasst",
    license="Apache-2.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Köpf et al. (2023), OpenAssistant Conversations: Democratizing Large Language Model "
    "Alignment, arXiv 2304.07327",
    moderated=True,
)

_SIDES: Mapping[str, Side] = {"prompter": "user", **SIDES}
_READY = "ready_for_export"
_KEPT = ("message_id", "parent_id", "tree_state", "text", "role", "lang", "rank")
_DROPPED = ("deleted", "synthetic")
_UNRANKED = 1 << 30


@dataclass(slots=True)
class _Node:
    side: Side
    text: str
    rank: int = _UNRANKED
    depth: int = 0
    replies: list[_Node] = field(default_factory=list)


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Join messages, and normalized threads, of one tree; whole trees pass as they come."""
    trees: dict[str, tuple[str, dict[str, Any]]] = {}
    kept: Mapping[str, Any]
    for record in records:
        value = record.value
        if is_normalized(value):
            name, part = _tree_name(identity(value.get("id"))), "threads"
            kept = value
        elif isinstance(value, Mapping) and "message_id" in value and value.get("message_tree_id"):
            name, part = identity(value["message_tree_id"]), "messages"
            kept = {key: value.get(key) for key in (*_KEPT, *_DROPPED)}
        else:
            yield record
            continue
        _, tree = trees.setdefault(name, (record.where, {"message_tree_id": name}))
        tree.setdefault(part, []).append(kept)
    for where, tree in trees.values():
        yield Record(where, tree)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    wanted = options.get("threads", "best")
    if wanted not in ("best", "all"):
        raise ConfigError(f"unknown choice of threads {wanted!r}", expected="best or all")
    if is_normalized(value):
        value = {"message_tree_id": _tree_name(identity(value.get("id"))), "threads": [value]}
    tree = required(value, "message_tree_id")
    name = identity(tree["message_tree_id"])
    roots, language = _roots(tree)
    _measure(roots)
    threads = _threads(roots)
    for number, (earlier, turns) in enumerate(threads):
        yield HumanDialogue(
            id=f"oasst/{name}/{number}",
            turns=tuple(turns),
            source=INFO.name,
            earlier=fold(earlier),
            group_keys=(name,),
            language=language,
        )
        if wanted == "best":
            return


def _roots(tree: Mapping[str, Any]) -> tuple[list[_Node], str]:
    """Return the first messages of a tree, which is one, and its language."""
    if "threads" in tree:
        return _from_threads(tree["threads"]), ""
    whole = "messages" not in tree
    found = required(tree, "prompt")["prompt"] if whole else _from_rows(tree["messages"])
    root = required(found, "role", "text")
    state = root.get("tree_state", tree.get("tree_state"))
    if state not in (None, _READY):
        raise Unfit("not_ready", f"the state of the tree is {state!r}")
    for reason in _DROPPED:
        if root.get(reason) is True:
            raise Unfit(reason, "the first message")
    return [_from_message(root)], language_code(root.get("lang"))


def _from_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Hang every message below its parent; what has lost its parent is lost."""
    by_id: dict[Any, dict[str, Any]] = {row["message_id"]: {**row, "replies": []} for row in rows}
    root = None
    for row in by_id.values():
        parent = row.get("parent_id")
        if not parent:
            root = root or row
        elif parent in by_id:
            by_id[parent]["replies"].append(row)
    if root is None:
        raise Unfit("no_root", "no message of the tree is the first one")
    return root


def _from_message(message: Mapping[str, Any]) -> _Node:
    root = _node(message)
    waiting = [(root, message)]
    while waiting:
        node, found = waiting.pop()
        for reply in found.get("replies") or ():
            if not any(reply.get(reason) is True for reason in _DROPPED):
                node.replies.append(_node(reply))
                waiting.append((node.replies[-1], reply))
    return root


def _from_threads(threads: Iterable[Mapping[str, Any]]) -> list[_Node]:
    """Lay threads of one tree over each other: the same text after the same text is one node."""
    top = _Node("agent", "")
    for thread in threads:
        node = top
        for turn in thread["turns"]:
            found = _node(turn)
            same = (n for n in node.replies if (n.side, n.text) == (found.side, found.text))
            known = next(same, None)
            if known is None:
                node.replies.append(found)
            node = known or found
    return top.replies


def _node(message: Any) -> _Node:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise Unfit("missing_role", "a message has no 'role'")
    side = _SIDES.get(message["role"].strip().lower())
    text, rank = message.get("text"), message.get("rank")
    if side is None:
        raise Unfit("unknown_role", f"the role {message['role'][:40]!r}")
    if text is not None and not isinstance(text, str):
        raise Unfit("bad_text", f"a text is of the type {type(text).__name__}")
    return _Node(side, text or "", int(rank) if isinstance(rank, int | float) else _UNRANKED)


def _measure(roots: list[_Node]) -> None:
    """Note how long the longest conversation under each message is, and put the best first."""
    order = list(roots)
    for node in order:  # grows while it is read: parents before their replies
        order.extend(node.replies)
    for node in reversed(order):
        node.replies.sort(key=lambda reply: (reply.rank, -reply.depth))
        node.depth = 1 + max((reply.depth for reply in node.replies), default=0)


def _threads(roots: list[_Node]) -> Iterator[tuple[list[HumanTurn], list[HumanTurn]]]:
    """Yield what comes before, and the turns of, every thread with a new message of a person."""
    seen: set[int] = set()
    waiting = [[root] for root in reversed(roots)]
    while waiting:
        path = waiting.pop()
        if path[-1].replies:
            waiting.extend([*path, reply] for reply in reversed(path[-1].replies))
            continue
        new = [at for at, node in enumerate(path) if node.side == "user" and id(node) not in seen]
        if not new:
            continue
        seen.update(id(path[at]) for at in new)
        start = max(new[0] - 1, 0)  # with the reply that the new message answers
        turns = [HumanTurn(node.side, node.text) for node in path]
        yield turns[:start], turns[start:]


def _tree_name(name: str) -> str:
    """Return the tree of a normalized thread: `t1` of `oasst/t1/0`."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 else name


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and (
        {"message_tree_id", "prompt"} <= value.keys() or {"message_id", "parent_id"} <= value.keys()
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, gather=gather, options=("threads",))
