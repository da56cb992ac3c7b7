"""A tiny invented copy of UserRL: the places and schemas of its files, none of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimesim import jsonio

FUNCTION = [
    {"id": "func-1", "rule": "a + b * c - d", "test_case": [1, 2, 3, 4], "expected_result": 3.0},
    {"id": "func-2", "rule": "b * c + a - d", "test_case": [5, 2, 2, 1], "expected_result": 8.0},
    {"id": "func-3", "rule": "(a + b) / d * c", "test_case": [1, 2, 3, 2], "expected_result": 4.5},
    {"id": "func-4", "rule": "a ** b ** d", "test_case": [1, 9, 9, 9], "expected_result": 1.0},
    {"id": "func-5", "rule": "a + open", "test_case": [1, 1, 1, 1], "expected_result": 1.0},
]
_WELL = "The baker sets an empty plate at the window because the blind postman counts plates."
STORIES = {
    "1": {
        "new_title": "The Empty Plate",
        "new_surface": "A baker puts out a plate with nothing on it.",
        "new_bottom": _WELL,
        "evaluation": [
            {"statement": "The plate is a sign for the postman.", "score": 0.7},
            {"statement": "He is blind.", "score": 0.3},
        ],
        "judgment": "Yes",
    },
    "2": {
        "new_title": "One More Plate",
        "new_surface": "A baker puts out two plates.",
        "new_bottom": _WELL + " Today there are two.",
        "evaluation": [{"statement": "Two letters came.", "score": 1.0}],
        "judgment": "Yes",
    },
    "3": {
        "new_title": "A Wet Coat",
        "new_surface": "It never rained.",
        "new_bottom": "She hid below the fountain to win a bet with her nephew.",
        "evaluation": [{"statement": "The bet was won below the fountain.", "score": 1.0}],
        "judgment": "Yes",
    },
    "4": {
        "new_title": "Nothing",
        "new_surface": "x",
        "new_bottom": "y",
        "evaluation": [],
        "judgment": "No",
    },
}
ENTITIES = [
    {
        "id": f"entity_{place}",
        "title": title,
        "description": "I am thinking of a kitchen tool.",
        "goal": "Guess it.",
        "target_entity": f"{title} - {what}",
        "category": category,
    }
    for place, (title, what, category) in enumerate(
        [
            ("Ladle", "a deep spoon with a long handle, for soup", "tool"),
            ("Whisk", "loops of wire that beat cream", "tool"),
            ("Teapot", "a vessel with a spout in which leaves are steeped", "vessel"),
        ]
    )
]
_ARGUMENT = (
    "Umbrellas drip on floors, block narrow pavements, break during storms, poke neighbors, "
    "vanish from stands and cost money every autumn."
)
STATEMENTS = [
    {"id": f"s{place}", "claim": claim, "argument": _ARGUMENT}
    for place, claim in enumerate(
        [
            "Offices should forbid umbrellas.",
            "Offices should forbid umbrellas.",
            "Trams should forbid umbrellas.",
        ]
    )
]
_DETAILS = [
    {
        "description": "Number of guests",
        "importance": "3",
        "inquiry": "How many guests will come?",
        "options": ["four", "nine"],
    },
    {"description": "Budget", "importance": "1"},
]
INTENTIONS = {
    "train": [
        {"id": "i1", "category": "Home", "task": "Plan a supper.", "missing_details": _DETAILS},
        {"id": "i2", "category": "Home", "task": "Paint a fence.", "missing_details": _DETAILS},
    ],
    "test": [
        {"id": "i3", "category": "Home", "task": "Plan a supper.", "missing_details": _DETAILS},
        {"id": "i4", "category": "Home", "task": "Mend a chair.", "missing_details": [{}]},
    ],
}


_VIEW = ("view", "side", "A room towards the harbor", "I like to watch ships.")
_GEARS = ("gears", "kind", "An automatic gearbox", "My left foot is lazy.")


def _aspect(letter: str, city: str, wish: Sequence[str]) -> dict[str, Any]:
    return {
        "preferences": [
            [*wish, "more"],
            ["too", "short"],
        ],
        "options": {
            "correct": [
                {"id": f"{letter}1", "price": 70, "type": "correct", "reason": "cheap"},
                {"id": f"{letter}2", "price": 90, "type": "correct", "reason": "fits"},
            ],
            "wrong": [{"id": f"{letter}3", "price": 40, "type": "wrong", "reason": "no view"}],
            "noise": [{"id": f"{letter}4", "price": 50, "reason": "other town"}],
        },
        "arguments": {"city": city},
        "correct_ids": [f"{letter}1", f"{letter}2"],
        "best_id": f"{letter}1",
    }


TRAVEL = {
    f"hotel:2-{hotel}|rental_car:2-{car}": {
        "scenario": "A short trip to the coast.",
        "dimensions": ["hotel", "rental_car"],
        "wanted_num": 22,
        "initial_description": f"I want a hotel and a rental car in Port {hotel}.",
        "hotel": _aspect("H", f"Port {hotel}", _VIEW),
        "rental_car": _aspect("C", f"Port {hotel}", _GEARS),
    }
    for hotel, car in ((1, 1), (1, 2), (3, 3), (4, 1))
}
TAU = {
    "train": [("retail-train-000", "ida_bram_1"), ("retail-train-001", "tom_vesk_2")],
    "test": [("airline-012", "ida_bram_1"), ("retail-001", "tom_vesk_2")],
}


def _errand(name: str, person: str) -> dict[str, Any]:
    order = {"name": "cancel_order", "kwargs": {"order_id": "#1"}}
    away = {"name": "transfer_to_human_agents", "kwargs": {"summary": "no"}}
    return {
        "id": name,
        "obs": "Hello, I need help.",
        "info": {
            "task": {
                "user_id": person,
                "actions": [order, away],
                "instruction": f"You are {person}. Cancel order #1.",
                "outputs": ["12.50"],
            },
            "source": "user",
        },
    }


QUESTIONS = [
    {"id": "Q-1", "question": "Who wrote the book about the tower of Nell?", "answer": "Ada Vorn"},
    {"id": "Q-2", "question": "Which river runs past the mill of Tarn?", "answer": "the Issel"},
]
_HOME = {
    "function": "FunctionGym/functiongym",
    "turtle": "TurtleGym/turtlegym",
    "telepathy": "TelepathyGym/telepathygym",
    "persuade": "PersuadeGym/persuadegym",
    "intention": "IntentionGym/intentiongym",
    "travel": "TravelGym/travelgym",
    "tau": "TauGym/taugym",
    "search": "SearchGym/searchgym",
}
FILES: Mapping[str, Mapping[str, Any]] = {
    "function": {"functions.json": FUNCTION},
    "turtle": {"all_stories_refined.json": STORIES},
    "telepathy": {"all_entities_refined.json": ENTITIES},
    "persuade": {"all_statements_refined.json": STATEMENTS},
    "intention": {
        "all_intentions_train.json": INTENTIONS["train"],
        "all_intentions_test.json": INTENTIONS["test"],
    },
    "travel": {"travelgym_data_22.json": TRAVEL},
    "tau": {f"tau_{split}.json": [_errand(*one) for one in rows] for split, rows in TAU.items()},
    "search": {"questions.json": QUESTIONS},
}
TABLES: Mapping[str, Mapping[str, tuple[Mapping[str, str], ...]]] = {
    "function_multiturn": {
        "train": ({"id": "func-1"}, {"id": "func-4"}),
        "test": ({"id": "func-2"}, {"id": "func-3"}, {"id": "func-9"}),
    },
    "turtle_multiturn": {
        "train": ({"title": "the empty plate"},),
        "test": ({"title": "One More Plate"}, {"title": "A Wet Coat"}),
    },
    "telepathy_multiturn": {"train": ({"title": "Ladle"},), "test": ({"title": "Teapot"},)},
    "persuasion_multiturn": {
        "train": (STATEMENTS[0],),
        "test": (STATEMENTS[1], STATEMENTS[2]),
    },
    "intention_multiturn": {"train": ({"id": "i1"},), "test": ({"id": "i3"}, {"id": "i2"})},
    "travel22_multiturn_onechoice": {
        "train": ({"id": "hotel:2-1|rental_car:2-1"}, {"id": "hotel:2-4|rental_car:2-1"}),
        "test": ({"id": "hotel:2-1|rental_car:2-2"}, {"id": "hotel:2-3|rental_car:2-3"}),
    },
    "tau_multiturn": {
        split: tuple({"id": name} for name, _ in rows) for split, rows in TAU.items()
    },
    "bamboogle_multiturn": {"test": ({"id": "Q-1"}, {"id": "Q-2"})},
}


def write_files(root: Path, gym: str) -> None:
    """Write the task files of a gym."""
    for name, value in FILES[gym].items():
        jsonio.write_json(root / "gyms" / _HOME[gym] / "data" / name, value)


def write_tables(root: Path, folder: str) -> None:
    """Write the tables of a gym in the schema of the original; pyarrow has to be there."""
    for split, rows in TABLES[folder].items():
        write_table(root / "data" / folder / f"{split}.parquet", split, rows)


def write_table(file: Path, split: str, rewards: Sequence[Mapping[str, Any]]) -> None:
    """Write one table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "data_source": "interact_invented",
            "prompt": [
                {"role": "system", "content": "You talk to somebody."},
                {"role": "user", "content": "Begin."},
            ],
            "ability": "interaction",
            "reward_model": {"style": "rule", "ground_truth": "", "env_name": "Invented", **reward},
            "extra_info": {"split": split, "index": index, "need_tools_kwargs": True},
        }
        for index, reward in enumerate(rewards)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), file)
