"""The 27 evaluation files of SOUL: facts of benchmarks.md 5.2 and 5.6."""

from __future__ import annotations

from typing import NamedTuple

AXES = ("CONV", "SS", "COG", "ROLE", "EVAL")


class File(NamedTuple):
    """One evaluation file.

    Attributes:
        stem: its name at the source.
        task: the task of `envs.tasks` that its rows belong to.
    """

    axis: str
    title: str
    stem: str
    task: str


FILES = (
    File("CONV", "UserLLM", "userllm", "userllm"),
    File("CONV", "MirrorBench", "mirrorbench", "mirrorbench"),
    File("CONV", "Humanual-Chat", "humanual_chat", "humanual_chat"),
    File("CONV", "SimArena-Doc", "sim_doc", "sim_doc"),
    File("SS", "Sotopia-Hard", "sotopia_hard", "sotopia"),
    File("COG", "Fantom", "fantom", "fantom"),
    File("COG", "Hitom", "hitom", "hitom"),
    File("COG", "Paratomi", "paratomi", "paratomi"),
    File("COG", "Social-R1", "social_r1", "social_r1"),
    File("ROLE", "Coser", "coser", "coser"),
    File("ROLE", "Lifechoices", "lifechoices", "lifechoices"),
    File("ROLE", "Twinvoice", "twinvoice", "twinvoice"),
    File("ROLE", "BehaviorChain", "behaviorchain", "behaviorchain"),
    File("ROLE", "SimArena-Math", "sim_math", "sim_math"),
    File("ROLE", "Mistakes", "mistakes", "mistakes"),
    File("ROLE", "Humanual-Email", "humanual_email", "humanual_email"),
    File("ROLE", "Humanual-News", "humanual_news", "humanual_news"),
    File("ROLE", "Humanual-Politics", "humanual_politics", "humanual_politics"),
    File("ROLE", "Humanual-Book", "humanual_book", "humanual_book"),
    File("ROLE", "Humanual-Opinion", "humanual_opinion", "humanual_opinion"),
    File("EVAL", "AlignX-Demo", "alignx_demo", "alignx"),
    File("EVAL", "AlignX-Pair", "alignx_pair", "alignx"),
    File("EVAL", "AlignX-UGC", "alignx_ugc", "alignx"),
    File("EVAL", "AlignX-Arb", "alignx_arbitrary", "alignx"),
    File("EVAL", "AlignX-Hist16", "alignx_history16", "alignx"),
    File("EVAL", "SocSci210", "socsci210", "socsci210"),
    File("EVAL", "HumanLLM", "humanllm", "humanllm"),
)
"""In the order of the published table, with the axes of MIMESIS (benchmarks.md 5.6)."""
MOVED = {"humanual_book": "EVAL", "humanual_opinion": "EVAL"}
"""Files whose axis is another one in OdysSim's figure."""
FIRST_TEN = (
    "sotopia_hard",
    "coser",
    "lifechoices",
    "userllm",
    "mirrorbench",
    "fantom",
    "hitom",
    "paratomi",
    "mistakes",
    "twinvoice",
)
"""The ten tasks of the first SOUL (arXiv 2605.20506)."""
