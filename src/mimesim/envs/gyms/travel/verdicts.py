"""What a judge answers in the gym `travel`, made to fit what may be answered now.

A judge that lies about an id is asked again and finally has failed. The loose forms are for
`compat`, where such an answer is taken and then treated as the original does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, field_validator, model_validator

from mimesim.envs.gyms.travel import cues


class SearchVerdict(BaseModel):
    """Whether a request can be looked up, and for which aspect."""

    match: bool
    aspect: str | None = None

    @field_validator("aspect")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        return None if value is None else cues.plain_name(value)


class UtteranceVerdict(BaseModel):
    """What an utterance is: 1 small talk, 2 about a wish, 3 about none, 4 too vague."""

    type: Literal[1, 2, 3, 4]
    preference_id: str | None = None


@lru_cache(maxsize=1024)
def search_schema(aspects: tuple[str, ...]) -> type[SearchVerdict]:
    """Return the form of a verdict on a search; a match names one of `aspects`."""

    class Search(SearchVerdict):
        """Whether a request can be looked up, and for which aspect."""

        @model_validator(mode="after")
        def _known(self) -> Search:
            if self.match and self.aspect not in aspects:
                raise ValueError("with a match, aspect must be one of " + ", ".join(aspects))
            return self

    return Search


@lru_cache(maxsize=1024)
def utterance_schema(ids: tuple[str, ...]) -> type[UtteranceVerdict]:
    """Return the form of a verdict on an utterance; type 2 names one of `ids`."""

    class Utterance(UtteranceVerdict):
        """What an utterance is: 1 small talk, 2 about a wish, 3 about none, 4 too vague."""

        @model_validator(mode="after")
        def _open(self) -> Utterance:
            if self.type == cues.HELD and self.preference_id not in ids:
                known = "one of " + ", ".join(ids) if ids else "never given: none is left"
                raise ValueError(f"with type 2, preference_id must be {known}")
            return self

    return Utterance
