"""Behaviors that keep something back: B1 a standard, B3 an answer, B5 a detail."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage
from mimesim.scenarios.behaviors.base import Behavior, Situation, exchanges
from mimesim.scenarios.fields import PHRASED, asked_fields, field_name, says, says_field
from mimesim.scenarios.rows import fill


class HiddenEvaluationCriteria(Behavior):
    """B1: a yardstick that is never named."""

    id = "B1"
    told = ("criterion",)

    def fitting(self, case: Situation) -> list[str]:
        """Return the record fields whose standard can be met or missed in this case."""
        money = {"refund", "return"} & set(case.request.traits)
        limits = case.manual.limits_of(case.row.subflow)
        leveled = any("member_level" in m.reads for m in limits) or any(
            "member_level" in step.fields for step in case.request.procedure
        )
        fits = {"payment_method": money, "packaging": money, "member_level": leveled}
        return [name for name, ok in fits.items() if ok and name in case.row.record]

    def applicable(self, case: Situation) -> bool:
        """A standard needs a field it can be about."""
        return bool(self.fitting(case))

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the field and word the standard."""
        field = rng.choice(self.fitting(case))
        criterion = fill(self.options[field], {"value": case.row.record[field]})
        return {"field": field, "criterion": criterion}


def given_away_by(name: str, case: Situation) -> list[str]:
    """Return the required fields whose value holds that of `name`, as an address its zip code."""
    record = case.row.record
    others = [other for other in case.request.required if other != name and other in record]
    return [other for other in others if says(str(record[other]), str(record[name]))]


class ClarificationNoncooperation(Behavior):
    """B3: asked, and no answer.

    `patience` counts how often a scripted customer dodges a field before giving it.
    """

    id = "B3"
    told = ("withheld_fields",)
    has_check = True

    def fitting(self, case: Situation) -> list[str]:
        """Return required fields that agents have words for and nothing else gives away."""
        candidates = [n for n in case.required if n in PHRASED and n in case.row.record]
        if case.manual.compat:
            return candidates
        return [
            name
            for name in candidates
            if name not in case.request.wishes
            and (case.row.replay == "cut" or not case.disclosed(name))
            and not given_away_by(name, case)
        ]

    def applicable(self, case: Situation) -> bool:
        """Two askable fields, so that something is left to talk about."""
        return len(self.fitting(case)) >= 2

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw one or two fields and the patience."""
        fitting = self.fitting(case)
        chosen = rng.sample(fitting, rng.choice((1, 2)))
        return {
            "withheld_fields": [f for f in fitting if f in chosen],
            "patience": rng.choice((1, 1, 2)),
        }

    def words(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Name the fields in everyday words."""
        return {"field_words": " and your ".join(map(field_name, params["withheld_fields"]))}

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """Share of direct questions for a withheld field whose answer does not hold its value."""
        kept = [
            not says_field(answer, name, case.row.record[name])
            for question, answer in exchanges(turns)
            if "?" in question
            for name in asked_fields(question)
            if name in params["withheld_fields"]
        ]
        return sum(kept) / len(kept) if kept else None


class UnderspecifiedThenBlames(Behavior):
    """B5: the deciding detail is left out, then the agent is blamed."""

    id = "B5"
    told = ("omitted_detail",)

    def fitting(self, case: Situation) -> list[str]:
        """Return the details that do not contradict the record."""
        record, goods = case.row.record, "product_names" in case.row.record
        fits = {
            "weekend": True,
            "gift": goods,
            "tried": not goods,
            "bundle": goods and str(record.get("num_products")) != "1",
            "older_order": "order_id" in record,
        }
        return [name for name, ok in fits.items() if ok]

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw a detail that fits."""
        detail = rng.choice(self.fitting(case))
        return {"detail": detail, "omitted_detail": self.options[detail]}


B1 = HiddenEvaluationCriteria()
B3 = ClarificationNoncooperation()
B5 = UnderspecifiedThenBlames()
