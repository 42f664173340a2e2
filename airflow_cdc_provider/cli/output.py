"""What a command says, and how it is shown: JSON and YAML for machines, tables and lines for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

from airflow.cli.simple_table import AirflowConsole
from airflow.utils import yaml
from rich.console import Console

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.serde import to_plain

OK, DIFFERENT, USAGE, DATA, NO_INPUT, BUG, TEMPORARY, PERMISSION, CONFIGURATION = 0, 1, 64, 65, 66, 70, 75, 77, 78
PIPE_COLUMNS = 200
EMPTY = "-"
MACHINES = ("json", "yaml")
C = TypeVar("C", bound=Console)


@dataclass(frozen=True)
class OutputTable:
    """A table for people. Cells are text; an empty one shows as a dash."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Answer:
    """``body`` is the answer for machines; listing and lines are the same for people. ``verbatim`` lines are shown as
    they are, however long, where no other format is asked for. ``code`` is the exit code."""

    body: Mapping[str, Any]
    listing: OutputTable | None = None
    lines: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    code: int = OK
    verbatim: Sequence[str] = ()


def show(answer: Answer, output: str, out: TextIO, err: TextIO) -> None:
    """``output`` is one of Airflow's own formats, or empty for the answer's own lines. For machines the answer goes to
    stdout whole, problems too; else problems go to stderr. ``plain`` is rows alone: all the rest goes to stderr."""
    if output in MACHINES:
        body = dict(answer.body)
        if answer.problems:
            body["problems"] = [to_plain(problem) for problem in answer.problems]
        print(_written(body, output), file=out)
        return
    if not output:
        for line in answer.verbatim:
            print(line, file=out)
    elif answer.listing is not None and answer.listing.rows:
        _console(AirflowConsole(file=out), out).print_as(_rows(answer.listing, output), output)
    said = _console(Console(file=err, highlight=False), err)
    beside = said if output == "plain" and answer.listing is not None else _console(Console(file=out), out)
    for line in answer.lines:
        beside.print(line, markup=False, highlight=False)
    for problem in answer.problems:
        said.print(_spoken(problem), markup=False)


def _written(body: dict[str, Any], output: str) -> str:
    """Not by Airflow's console: it turns numbers into texts, and colours what nobody sees."""
    if output == "json":
        return json.dumps(body, ensure_ascii=True, indent=1)
    text: str = yaml.dump(body, sort_keys=False)
    return text.rstrip()


def _console(console: C, stream: TextIO) -> C:
    """As wide as the terminal; piped, as wide as Airflow's own answers."""
    if "COLUMNS" in os.environ:
        console.width = int(os.environ["COLUMNS"])
    elif not stream.isatty():
        console.width = PIPE_COLUMNS
    return console


def _rows(listing: OutputTable, output: str) -> list[dict[str, str]]:
    """A table leaves out columns that are empty in every row: people read it on narrow terminals."""
    cell = _piped if output == "plain" else _cell
    rows = [dict(zip(listing.columns, map(cell, row), strict=True)) for row in listing.rows]
    if output == "plain":
        return rows
    filled = [name for name in listing.columns if any(row[name] != EMPTY for row in rows)]
    return [{name: row[name] for name in filled} for row in rows]


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    return text.replace("[", "\\[")


def _piped(value: object) -> str:
    return str(value) if isinstance(value, int) else _text(value)


def _text(value: object) -> str:
    encoding = sys.stdout.encoding or "ascii"
    return str(value or EMPTY).encode(encoding, "replace").decode(encoding)


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
