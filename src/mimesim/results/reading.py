"""From the JSON of a record to its class; every record on disk is read here."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from mimesim.errors import DataError
from mimesim.jsonio import dumps

T = TypeVar("T")


def read_record(
    cls: type[T], value: Any, schema: str, *, what: str, where: str, strict: bool = False
) -> T:
    """Return the record that JSON values describe; unknown keys are ignored.

    Args:
        cls: its dataclass.
        value: an object with `schema` and the fields.
        schema: name and version that it must bear.
        what: name of the record, for errors.
        where: file, for errors.
        strict: whether a text that is wholly a number is no number.

    Raises:
        DataError: another schema, a missing key or a value of the wrong type.
    """
    from pydantic import ValidationError  # heavy: only where a file enters

    found = value.get("schema") if isinstance(value, dict) else None
    if found != schema:
        raise DataError(f"not a {what}: schema {found!r}", where=where, expected=repr(schema))
    text = dumps({key: one for key, one in value.items() if key != "schema"})
    try:
        record: T = _reader(cast(Any, cls)).validate_json(text, strict=strict)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{place}: {first['msg']}", where=where, expected=f"the fields of {schema}"
        ) from error
    return record


@cache
def _reader(cls: type[Any]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)
