"""The exception tree: what can go wrong, who is at fault, and how it is told.

    MimesimError
    ├── UsageError            wrong use, input or environment: one line, exit code 2
    │   ├── ConfigError       a config key or value (ValueError)
    │   ├── UnknownNameError  a registry name (LookupError)
    │   ├── DataError         a file, with its line number (ValueError)
    │   ├── MissingExtraError an optional extra is not installed (ImportError)
    │   └── EnvironmentFault  disk, endpoint preflight, wrong key, bad template (RuntimeError)
    ├── CallerError           a bug in the calling code, e.g. a step after the end (RuntimeError)
    └── EpisodeError          ends one conversation, never a run (RuntimeError)
        ├── AgentError · UserError · JudgeError · EnvError · InfraError
        └── ContextExceeded   a party's context is full (a clean truncation for the agent)

A `UsageError` always names what is wrong, where, what was expected and how to mend it.
`rollout/engine` is the only place that turns an `EpisodeError` into a record.
"""

from __future__ import annotations


class MimesimError(Exception):
    """Base of everything that MimeSim raises on purpose."""


class UsageError(MimesimError):
    """Wrong use, input or environment; the command line prints it and exits with 2.

    Args:
        what: what is wrong, offending values quoted with `!r`.
        where: file, line, key or flag; empty when `what` already says it.
        expected: what would have been right.
        mend: what the reader can do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", expected: str = "", mend: str = "") -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.mend = mend
        super().__init__(what)

    def __str__(self) -> str:
        """Return the whole message on one line."""
        parts = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.mend:
            parts.append(f"to mend: {self.mend}")
        return "; ".join(" ".join(part.split()) for part in parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Stay picklable although the constructor takes keywords only."""
        return (_rebuild, (type(self), self.what, self.where, self.expected, self.mend))


def _rebuild(kind: type[UsageError], what: str, where: str, expected: str, mend: str) -> UsageError:
    return kind(what, where=where, expected=expected, mend=mend)


class ConfigError(UsageError, ValueError):
    """A config key is unknown or its value is not usable."""


class UnknownNameError(UsageError, LookupError):
    """A registry has no entry of that name."""


class DataError(UsageError, ValueError):
    """A data file is damaged or has the wrong shape."""


class MissingExtraError(UsageError, ImportError):
    """A part of MimeSim needs an extra that is not installed."""

    @classmethod
    def for_extra(cls, part: str, extra: str) -> MissingExtraError:
        """Build the error for `part`, which needs `pip install mimesim[extra]`."""
        return cls(
            f"{part} needs the optional extra {extra!r}", mend=f'pip install "mimesim[{extra}]"'
        )


class EnvironmentFault(UsageError, RuntimeError):
    """The surroundings do not allow the work: disk, endpoint, key, template."""


class CallerError(MimesimError, RuntimeError):
    """The calling code broke a contract, e.g. it stepped a finished episode."""


class EpisodeError(MimesimError, RuntimeError):
    """Ends one conversation. `detail` never holds private text.

    Args:
        detail: short reason, safe to show to anyone.
        reason: stop reason of `dialogue.stop.StopReason`; None = the class's own.
        retryable: whether running the episode again can help.
        attempts: how many attempts were made before giving up.

    Attributes:
        lost: what the party drew and spent on this turn before it failed (a
            `dialogue.types.Reply`), for the record; None = nothing.
    """

    default_reason = "internal_error"

    def __init__(
        self,
        detail: str,
        *,
        reason: str | None = None,
        retryable: bool = False,
        attempts: int = 1,
    ) -> None:
        self.detail = detail
        self.reason = reason or self.default_reason
        self.retryable = retryable
        self.attempts = attempts
        self.lost: object | None = None
        super().__init__(detail)


class AgentError(EpisodeError):
    """The agent raised, stayed empty, or could not be understood."""

    default_reason = "agent_error"


class UserError(EpisodeError):
    """The user simulator broke its contract after all retries."""

    default_reason = "user_error"


class JudgeError(EpisodeError):
    """A needed verdict could not be had."""

    default_reason = "judge_error"


class EnvError(EpisodeError):
    """The environment itself failed."""

    default_reason = "env_error"


class InfraError(EpisodeError):
    """Network, provider or time-out trouble after all retries."""

    default_reason = "infra_error"


class ContextExceeded(EpisodeError):
    """The context of a party is full. `party` is 'agent', 'user' or 'judge'."""

    default_reason = "context_exceeded"

    def __init__(self, detail: str, *, party: str) -> None:
        self.party = party
        super().__init__(detail)
