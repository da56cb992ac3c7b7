"""Published rows to read beside ours, one TOML file per suite.

[[table]]
source = "paper, table"            # where it is printed
scale = "judge and assistant"      # numbers of another scale are no comparison
columns = ["FI", "D1"]
[table.rows]
"some model" = [94.0, 99.4]
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from mimesim.results.suite import ReferenceRow

_HERE = Path(__file__).parent


@cache
def references(suite: str) -> tuple[ReferenceRow, ...]:
    """Return the published rows of a suite in printed order; none where it has no file."""
    file = _HERE / f"{suite}.toml"
    if not file.is_file():
        return ()
    return tuple(
        ReferenceRow(
            subject,
            dict(zip(table["columns"], numbers, strict=True)),
            table["source"],
            table.get("scale", ""),
        )
        for table in tomllib.loads(file.read_text("utf-8"))["table"]
        for subject, numbers in table["rows"].items()
    )
