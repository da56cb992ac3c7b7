"""Reports as LaTeX tables for a paper (booktabs); all text of strangers is escaped."""

from __future__ import annotations

from mimesim.report.figures import MINUS, UNKNOWN, printable
from mimesim.report.grids import Grid, grids
from mimesim.results import RunRecord

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # a row that begins with a bracket would be read as an option of \\
    "]": "{]}",
    MINUS: "$-$",
    UNKNOWN: "--",
    "→": r"$\rightarrow$",
}


def latex(record: RunRecord) -> str:
    """Return the tables of a record, one `table` each, for a document that loads booktabs."""
    blocks = [f"% {' '.join(record.title.split())}: needs \\usepackage{{booktabs}}"]
    blocks += [_table(grid) for grid in grids(record)]
    return printable("\n\n".join(blocks) + "\n")


def escape(text: object) -> str:
    """Return `text` on one line, with nothing in it that TeX would act on."""
    return "".join(_SPECIAL.get(c, c) for c in " ".join(str(text).split()))


def _table(grid: Grid) -> str:
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\caption{{{escape(grid.title)}}}\label{{tab:{grid.key}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(grid.head) - 1)}}}",
        r"\toprule",
        _row(grid.head),
        r"\midrule",
        *map(_row, grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if grid.notes:
        lines.append(rf"\par\smallskip\footnotesize {escape('. '.join(grid.notes))}.")
    return "\n".join([*lines, r"\end{table}"])


def _row(cells: tuple[str, ...]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"
