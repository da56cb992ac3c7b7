"""Reads customer records from the ABCD corpus file that a user has.

The corpus is a map of splits (`train`, `dev`, `test`) to dialogues; its sample is a plain list. Of
a dialogue only the scenario is read. Scenarios without a procedure and records that lack a field
their subflow requires are left out and counted.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.scenarios.manual import ENV_KEYS
from mimesim.scenarios.records import GOAL_FIELD
from mimesim.scenarios.types import Manual, RequestType

Record = dict[str, Any]

INVENTED = ("shipping_status",)
"""What customers make up on the spot where their record does not say it."""


def read_records(path: Path, manual: Manual) -> tuple[dict[str, list[Record]], dict[str, int]]:
    """Return subflow -> records in file order, and why others were left out, with counts.

    Raises:
        DataError: the file is damaged or has not the shape of ABCD's.
    """
    known = {request.name: request for request in manual.request_types}
    found: dict[str, list[Record]] = {}
    skipped: Counter[str] = Counter()
    for scenario in _scenarios(path):
        subflow = str(scenario.get("subflow"))
        if subflow not in known:
            skipped["scenario without a procedure"] += 1
            continue
        record = flatten(scenario)
        missing = lacking(record, known[subflow], manual)
        if missing:
            skipped[f"record lacks {missing}"] += 1
        else:
            found.setdefault(subflow, []).append(record)
    return found, dict(sorted(skipped.items()))


def lacking(record: Mapping[str, Any], request: RequestType, manual: Manual) -> str:
    """Return the first field that a case of `request` needs and a record does not hold, or "".

    Wishes are the customer's own and need not be recorded.
    """
    limits = [name for limit in manual.limits_of(request.name) for name in limit.reads]
    needed = dict.fromkeys((*request.required, *GOAL_FIELD.findall(request.goal), *limits))
    free = {*request.wishes, *INVENTED, *ENV_KEYS}
    return next((name for name in needed if name not in record and name not in free), "")


def flatten(scenario: Mapping[str, Any]) -> Record:
    """Return a scenario's record: the fields of person and order as texts, and the articles.

    The printed list of products, with its image paths, is left out: names and amounts tell it.
    """
    record: Record = {}
    for part in ("personal", "order"):
        for key, value in _map(scenario.get(part)).items():
            if key != "products" and isinstance(value, str | int | float) and str(value).strip():
                record[key] = str(value).strip()
    product = _map(scenario.get("product"))
    names = [str(name).replace("_", " ") for name in product.get("names") or ()]
    amounts = [int(amount) for amount in product.get("amounts") or ()]
    if names:
        record.update(product_names=names, product_amounts=amounts, amount=str(sum(amounts)))
    if "purchase_date" in record and not _is_date(record["purchase_date"]):
        del record["purchase_date"]
    return record


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _scenarios(path: Path) -> Iterator[Mapping[str, Any]]:
    if ".jsonl" in path.suffixes:
        for line in jsonio.read_jsonl(path):
            yield _scenario(line.value, f"{path}:{line.number}")
        return
    content = _read(path)
    parts = content if isinstance(content, Mapping) else {"": content}
    for split, dialogues in parts.items():
        if not isinstance(dialogues, list):
            raise DataError(
                f"{split or 'the file'} is no list", where=str(path), expected="dialogues"
            )
        for number, dialogue in enumerate(dialogues):
            yield _scenario(dialogue, f"{path}: {split}[{number}]")


def _scenario(dialogue: Any, where: str) -> Mapping[str, Any]:
    scenario = dialogue.get("scenario") if isinstance(dialogue, Mapping) else None
    if not isinstance(scenario, Mapping):
        raise DataError("a dialogue without a scenario", where=where, expected="ABCD's corpus file")
    return scenario


def _read(path: Path) -> Any:
    if path.suffix != ".gz":
        return jsonio.read_json(path)
    try:
        with gzip.open(path) as stream:
            return jsonio.loads(stream.read().decode("utf-8"))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(
            f"cannot read: {error}", where=str(path), expected="a whole file"
        ) from error
