"""Golden numbers of the six UserLM metrics."""

from __future__ import annotations

from mimesim.bench.suites.goldens.base import Check, numbers
from mimesim.bench.suites.userlm import ending_f1
from mimesim.envs.tasks.userllm import intent_overlap, role_adherence
from mimesim.stats.texts import diversity, surface_tokens


def _metrics() -> dict[str, float | None]:
    turns = [surface_tokens(text) for text in ("book a flight", "book a hotel", "hi")]
    ends = [(True, True)] * 6 + [(True, False)] * 2 + [(False, True)] * 4 + [(False, False)] * 3
    overlap = intent_overlap("plan a trip to Japan in spring", "I wanna plan my Japan trip")
    graded = {f"{n} of 5 named": role_adherence(n, 5) for n in range(6)}
    return {
        "diversity of 2": diversity(turns[:2]),
        "diversity of 3": diversity(turns),
        "diversity of 1": diversity(turns[:1]),
        "termination F1": ending_f1(ends),
        "intent overlap": overlap,
        "corrected": 1 - overlap,
        **graded,
    }


CHECKS: list[Check] = [
    numbers(
        "userlm/micro",
        {
            "diversity of 2": 0.5,
            "diversity of 3": 0.833333,
            "diversity of 1": None,
            "termination F1": 0.666667,
            "intent overlap": 0.75,
            "corrected": 0.25,
            "0 of 5 named": 1,
            "1 of 5 named": 0,
            "2 of 5 named": 0,
            "3 of 5 named": 1,
            "4 of 5 named": 1,
            "5 of 5 named": None,
        },
        _metrics,
    )
]
