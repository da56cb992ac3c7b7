"""What can be set on a server, and the one error that becomes an HTTP answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.dialogue.stop import DIALECTS
from mimesim.errors import ConfigError, MimesimError
from mimesim.registry import closest

Roles = Literal["flipped", "natural"]
System = Literal["passthrough", "wrap"]


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings of one server.

    Attributes:
        seed: root of all seeds that a caller does not give.
        scenarios: whom callers meet who name nobody, as JSON of scenarios; empty = customers of the
            support desk.
        roles: whose words the chat roles are, where the caller does not say.
        system: what becomes of a caller's system text: the user's whole prompt as it stands, or the
            goal of a scenario in our own form.
        dialect: how a caller reads that the user leaves (`dialogue.stop.DIALECTS`).
        detect_loops: end a conversation that is nothing but courtesies or repeats itself.
        token: who calls must bear it; "" = nobody is asked.
        private_token: opens the thoughts of an episode; "" = they cannot be read.
        max_body: bytes of one request.
        max_messages: messages of one request.
        max_active: replies in the making at once.
        max_waiting: requests that may wait for that; more are sent away.
        per_minute: requests of one client in a minute; 0 = any number.
        timeout_s: wall clock of one request.
        memory_chars: characters of private state that are kept, oldest conversations go first.
        user_options: settings of the served users (`users.settings.Settings`).
        log_text: let the public words of both sides stand in the log; thoughts never do.
    """

    seed: int = 0
    scenarios: tuple[Mapping[str, Any], ...] = ()
    roles: Roles = "flipped"
    system: System = "passthrough"
    dialect: str = "plain"
    detect_loops: bool = True
    token: str = field(default="", repr=False)
    private_token: str = field(default="", repr=False)
    max_body: int = 2 * 2**20
    max_messages: int = 512
    max_active: int = 64
    max_waiting: int = 256
    per_minute: int = 0
    timeout_s: float = 120.0
    memory_chars: int = 8 * 2048 * 4000
    user_options: Mapping[str, Any] = field(default_factory=dict)
    log_text: bool = False

    def __post_init__(self) -> None:
        """Refuse what no server can keep.

        Raises:
            ConfigError: naming the setting.
        """
        check_ranges(self, COUNT, "max_body", "max_messages", "max_active", "memory_chars")
        check_ranges(self, NATURAL, "max_waiting", "per_minute")
        check_ranges(self, POSITIVE, "timeout_s")
        if self.dialect not in DIALECTS:
            raise ConfigError(
                f"'dialect' is {self.dialect!r}{closest(self.dialect, list(DIALECTS))}",
                expected="one of " + ", ".join(DIALECTS),
            )
        if self.token and self.token == self.private_token:
            raise ConfigError(
                "the private token is the callers' token", expected="a token of its own"
            )


class Refusal(MimesimError):
    """A request that gets no reply, as the HTTP answer tells it; no private text stands in it.

    Args:
        status: HTTP status.
        message: one line for people.
        code: short name for programs.
        param: the field at fault, where there is one.
        retry_after: seconds after which trying again can help.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        super().__init__(message)
