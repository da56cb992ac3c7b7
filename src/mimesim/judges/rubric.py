"""A language model as judge: one prompt template per kind of question, a schema for the verdict.

The template `judge/<kind>` gets the inputs; values reach it as data and are shown through the
filters of `prompts`, so no text can close its own block. Transport is retried below, a wrong form
is asked for again (`models.structured.ask`), and finished verdicts may be cached by model, prompt,
sampling and trial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, model_validator

from mimesim import jsonio, prompts
from mimesim.dialogue.types import PublicMessage
from mimesim.errors import ContextExceeded
from mimesim.judges.base import Failed, JudgeRequest, JudgeResult, Prose, Skipped, Verdict
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.models.cache import Cached, CacheStore, complete
from mimesim.models.load import ModelParty
from mimesim.models.structured import Answer, Asking, UnreadableError, ask, parse, visible

T = TypeVar("T", bound=BaseModel)

_FRAME = "judge/frame"
_REFUSAL = re.compile(
    r"\W*(?:(?:unfortunately|regrettably|apologies|sorry|as an? (?:ai|assistant|language model)\b"
    r"[^.,!\n]{0,60})\W+)*"
    r"(?:(?:but |however,? )?i (?:can ?not|can['’]t|won['’]t|will not|must (?:decline|refuse)"
    r"|decline|refuse|do not feel|don['’]t feel)"
    r"|i(?:['’]m| am) (?:sorry|afraid|not (?:able|allowed)|unable)|im sorry|i apologi[sz]e"
    r"|this (?:request|content) (?:violates|goes against)|sorry,)",
    re.IGNORECASE,
)


class CriterionScore(BaseModel):
    """The grade of one criterion."""

    id: str
    value: float


class RubricVerdict(BaseModel):
    """Grades of all criteria of a rubric, each once."""

    scores: list[CriterionScore]

    def grades(self) -> dict[str, float]:
        """Return criterion id -> grade."""
        return {score.id: score.value for score in self.scores}


def rubric_request(
    transcript: Sequence[PublicMessage],
    criteria: Mapping[str, str],
    *,
    levels: Sequence[float] = (0.0, 0.5, 1.0),
    seed: int,
    trial: int = 0,
) -> JudgeRequest[RubricVerdict]:
    """Ask for a grade of every criterion (id -> statement) on a conversation.

    An unknown, missing or doubled id, or a grade that is none of `levels`, is no verdict.
    """

    class Graded(RubricVerdict):
        """The verdict on exactly these criteria."""

        @model_validator(mode="after")
        def _each_once(self) -> Graded:
            if sorted(score.id for score in self.scores) != sorted(criteria):
                raise ValueError("every criterion must occur exactly once: " + ", ".join(criteria))
            if any(score.value not in levels for score in self.scores):
                raise ValueError("a value must be one of " + ", ".join(map(str, levels)))
            return self

    inputs = {
        "transcript": shown(transcript),
        "criteria": [{"id": key, "statement": text} for key, text in criteria.items()],
        "levels": [f"{level:g}" for level in levels],
    }
    return JudgeRequest("rubric", inputs, Graded, seed=seed, trial=trial)


def shown(transcript: Sequence[PublicMessage]) -> list[dict[str, str]]:
    """Return a public transcript as the judge templates take it."""
    return [{"role": message.role.value, "text": message.content} for message in transcript]


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How a judge model is called.

    Attributes:
        temperature: 0 = greedy, the rule for judges.
        max_tokens: cap on one answer; doubled once when an answer was cut.
        thinking: whether the model is asked to reason first; None = say nothing about it.
        reasks: how often an answer of the wrong form is asked for again.
        constrain: whether the server is asked to constrain the decoding to the schema.
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    thinking: bool | None = None
    reasks: int = 2
    constrain: bool = True


class RubricJudge(ModelParty):
    """A judge on a chat model.

    Args:
        model: who judges.
        name: door name, for records.
        settings: how it is called.
        store: keeps finished verdicts; None = no cache.
        precheck: names why a question must not be put at all, e.g. `invalid_transcript`, or "".
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        name: str = "",
        settings: JudgeSettings | None = None,
        store: CacheStore | None = None,
        precheck: Callable[[JudgeRequest[Any]], str] | None = None,
    ) -> None:
        self._settings = settings or JudgeSettings()
        self._store = store
        self._precheck = precheck
        super().__init__(
            model,
            name,
            prompt_hash=prompts.prompt_hash(*sorted(n for n in prompts.names() if _is_ours(n))),
            sampling=asdict(self._settings),
        )

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Put one question to the model; see `judges.base.Judge`.

        Raises:
            UnknownNameError: there is no template for this kind.
        """
        reason = self._precheck(request) if self._precheck is not None else ""
        if reason:
            return Skipped(reason)
        settings = self._settings
        sampling = Sampling(
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seed=request.seed,
            thinking=settings.thinking,
        )
        try:
            if issubclass(request.schema, Prose):
                return await self._told(request, sampling)
            answer = await ask(
                self._asked(request),
                self._messages(request),
                request.schema,
                sampling,
                Asking(settings.constrain, settings.reasks, last=request.take == "last"),
            )
        except ContextExceeded as error:
            raise ContextExceeded(error.detail, party="judge") from error
        return _result(answer)

    async def aclose(self) -> None:
        """Close the model and the cache; twice is harmless."""
        await super().aclose()
        if self._store is not None:
            self._store.close()

    async def _told(self, request: JudgeRequest[Any], sampling: Sampling) -> JudgeResult[Any]:
        """Take the answer as prose; one that was cut or stayed empty is none."""
        asked = self._asked(request, complete)
        found = await asked.chat(self._messages(request), sampling)
        text = visible(found).strip()
        refused = found.finish_reason == "content_filter" or _REFUSAL.match(text)
        if text and found.finish_reason != "length" and not refused:
            value = request.schema(text=text)
            return Verdict(value, raw=found.text, usage=found.usage, cached=found.cached)
        none = Skipped("refused") if refused else Failed("the answer is cut or empty")
        return replace(none, raw=found.text, attempts=1, usage=found.usage)

    def _messages(self, request: JudgeRequest[Any]) -> list[ChatMessage]:
        prose = issubclass(request.schema, Prose)
        schema = jsonio.dumps(request.schema.model_json_schema(), sort_keys=True)
        return [
            ChatMessage("system", prompts.render(_FRAME, schema="" if prose else schema)),
            ChatMessage("user", prompts.render(f"judge/{request.kind}", **request.inputs)),
        ]

    def _asked(
        self, request: JudgeRequest[T], accept: Callable[[Completion], bool] | None = None
    ) -> ChatModel:
        """Return the model behind the cache; only answers that hold a verdict are kept."""
        if self._store is None:
            return self._model

        def readable(completion: Completion) -> bool:
            try:
                parse(visible(completion), request.schema, last=request.take == "last")
            except UnreadableError:
                return False
            return complete(completion)

        cached = Cached(self._model, self._store, accept=accept or readable)
        return cached.at(trial=request.trial)


def _is_ours(template: str) -> bool:
    return template.startswith(("judge/", "models/"))


def _result(answer: Answer[T]) -> JudgeResult[T]:
    if answer.parsed is not None:
        return Verdict(
            answer.parsed.value,
            raw=answer.raw,
            attempts=answer.attempts,
            tier=answer.parsed.tier,
            usage=answer.usage,
            cached=answer.cached,
        )
    refused = answer.finish_reason == "content_filter" or _REFUSAL.match(answer.raw)
    empty = Skipped("refused") if refused else Failed(answer.problem)
    return replace(empty, raw=answer.raw, attempts=answer.attempts, usage=answer.usage)
