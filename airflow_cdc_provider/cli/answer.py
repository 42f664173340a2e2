"""What a command says, and how it is shown: JSON for machines, tables and lines for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.plain import to_plain

OK, DIFFERENT, USAGE, DATA, NO_INPUT, BUG, TEMPORARY, PERMISSION, CONFIGURATION = 0, 1, 64, 65, 66, 70, 75, 77, 78
PIPE_COLUMNS = 200


@dataclass(frozen=True)
class Listing:
    """A table for people. Cells are text; an empty one shows as a dash."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Answer:
    """``body`` is the answer for machines; listing and lines are the same for people. ``verbatim`` lines are shown as
    they are, however long. ``code`` is the exit code."""

    body: Mapping[str, Any]
    listing: Listing | None = None
    lines: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    code: int = OK
    verbatim: Sequence[str] = ()


def show(answer: Answer, as_json: bool, out: TextIO, err: TextIO) -> None:
    """JSON goes to stdout whole, errors too. For people the answer goes to stdout and problems to stderr."""
    if as_json:
        body = dict(answer.body)
        if answer.problems:
            body["problems"] = [to_plain(problem) for problem in answer.problems]
        print(json.dumps(body, ensure_ascii=True, indent=1), file=out)
        return
    console = _console(out)
    if answer.listing is not None and answer.listing.rows:
        console.print(_table(answer.listing))
    for line in answer.lines:
        console.print(line, markup=False)
    for line in answer.verbatim:
        print(line, file=out)
    told = _console(err)
    for problem in answer.problems:
        told.print(_spoken(problem), markup=False)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def _table(listing: Listing) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in listing.columns:
        table.add_column(column, overflow="fold")
    for row in listing.rows:
        table.add_row(*(_cell(cell) for cell in row))
    return table


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value or "-")
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "replace").decode(encoding).replace("[", "\\[")


def _spoken(problem: Problem) -> str:
    lines = [f"{problem.code}  {problem.what}"]
    for label, text in (
        ("where", problem.where),
        ("found", problem.found),
        ("allowed", problem.allowed),
        ("data", problem.data),
        ("do", problem.do),
    ):
        if text:
            lines.append(f"    {label}: {text}")
    return "\n".join(lines)
