"""The registry of users; a name twice is refused."""

from __future__ import annotations


class Registry:
    def __init__(self) -> None:
        self._users: dict[str, type] = {}

    def register_user(self, user_constructor: type, name: str | None = None) -> None:
        key = name or user_constructor.__name__
        if key in self._users:
            raise ValueError(f"user {key} is there already")
        self._users[key] = user_constructor

    def get_users(self) -> list[str]:
        return list(self._users)


registry = Registry()
