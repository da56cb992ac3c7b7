"""The users of a training are frozen, and so are its judges: who they are is written down and checked.

A fingerprint is taken before the first batch, compared when a run goes on, and once more at its
end. A model in a folder is known by the hash of its files, an endpoint by host, model and settings,
a prompted user by the hash of its prompt templates. A user that is code is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from mimesim import jsonio
from mimesim.dialogue.types import Identity
from mimesim.errors import EnvironmentFault
from mimesim.models.embedded import NAME as EMBEDDED
from mimesim.models.embedded import embedded_folder
from mimesim.seeds import file_fingerprint, fingerprint
from mimesim.train import launch
from mimesim.users.mixture import Mixture

FILE = "frozen.json"
_PARTS = ("*.safetensors", "*.bin", "*.json", "*.jinja")
"""Files of a model folder that decide what it says."""


class Named(Protocol):
    """A user, a judge."""

    @property
    def identity(self) -> Identity:
        """Who it is."""
        ...


def fingerprint_of(party: Named) -> dict[str, Any]:
    """Return what tells a party from one that would act otherwise, as JSON values."""
    who = party.identity
    found = {
        "model": who.model,
        "endpoint": who.endpoint_host,
        "revision": who.revision,
        "prompt": who.prompt_hash,
        "sampling": dict(who.sampling),
        "weights": _weights(who),
    }
    return {"kind": who.kind, **{key: value for key, value in found.items() if value}}


class Frozen:
    """The parties of one training that must not change; the first process looks for all.

    Args:
        out: folder of the run.
        parties: users, mixtures of them, and judges.
    """

    def __init__(self, out: Path, parties: Iterable[Named | Mixture]) -> None:
        self._out = out
        self._parties = list(_single(parties))
        self.record: dict[str, Any] = {}

    def begin(self) -> None:
        """Write down who takes part, or compare with who did before an interruption.

        Raises:
            EnvironmentFault: somebody is not who it was; nothing was trained with it.
        """
        trouble, path = "", self._out / FILE
        if launch.is_first():
            now = self._look()
            self.record = jsonio.read_object(path) if path.is_file() else now
            jsonio.write_json(path, self.record)
            trouble = _difference(self.record, now)
        self._refuse(
            trouble,
            "put back what was there and the same command goes on, or take another --out",
        )

    def check(self) -> None:
        """Compare at the end; all processes must ask.

        Raises:
            EnvironmentFault: somebody changed meanwhile; weights and checkpoints are kept.
        """
        trouble = _difference(self.record, self._look()) if launch.is_first() else ""
        self._refuse(
            trouble,
            "weights and checkpoints are kept; put back what was there and run the command again",
        )

    def _look(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for party in self._parties:
            name, now = party.identity.name, jsonio.loads(jsonio.dumps(fingerprint_of(party)))
            more = 2
            while found.get(name, now) != now:  # one name in two gyms, with other settings
                name, more = f"{party.identity.name} ({more})", more + 1
            found[name] = now
        return found

    def _refuse(self, trouble: str, mend: str) -> None:
        told = next((words for words in launch.shared(trouble) if words), "")
        if told:
            raise EnvironmentFault(
                told, where=str(self._out / FILE), expected="frozen users and judges", mend=mend
            )


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words what changed first; empty = nothing."""
    for name in sorted({*was, *now}):
        one, two = was.get(name, {}), now.get(name, {})
        for key in sorted({*one, *two}):
            if one.get(key) != two.get(key):
                before, after = one.get(key, "none"), two.get(key, "none")
                return f"{name} is not who it was: {key} {before!r} became {after!r}"
    return ""


def _single(parties: Iterable[Named | Mixture]) -> Iterator[Named]:
    for party in parties:
        yield from party.sources if isinstance(party, Mixture) else (party,)


def _weights(who: Identity) -> str:
    """Return the hash of the files of a model on this machine; empty = it is not a folder here."""
    folder = embedded_folder() if who.model == EMBEDDED else Path(who.model).expanduser()
    if not who.model or who.endpoint_host or not folder.is_dir():
        return ""
    paths = sorted({path for part in _PARTS for path in folder.glob(part)})
    return fingerprint("\n".join(f"{path.name} {file_fingerprint(path, 64)}" for path in paths))
