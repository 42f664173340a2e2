"""The output of a command: JSON and YAML for machines, tables and lines for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

from airflow.cli.simple_table import AirflowConsole
from airflow.utils import yaml
from rich.console import Console

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.printable import printable, printable_lines
from airflow_cdc_provider.core.serde import to_plain

PIPE_COLUMNS = 200
EMPTY = "-"
MAX_LISTED = 10
MACHINE_FORMATS = ("json", "yaml")
C = TypeVar("C", bound=Console)


@dataclass(frozen=True)
class OutputTable:
    """A table for people. An empty cell is shown as a dash."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class CommandOutput:
    """``body`` is for machines; ``listing`` and ``lines`` show the same to people. ``verbatim`` lines are printed
    unwrapped, if the format is empty. ``code`` is the exit code."""

    body: Mapping[str, Any]
    listing: OutputTable | None = None
    lines: Sequence[str] = ()
    problems: Sequence[Problem] = ()
    code: int = exit_codes.OK
    verbatim: Sequence[str] = ()


def show(result: CommandOutput, output_format: str, out: TextIO, err: TextIO) -> None:
    """``output_format`` is one of Airflow's output formats, or empty for the ``verbatim`` lines. Machine formats go
    to stdout, with the problems; else problems go to stderr. ``plain`` prints rows to stdout, and lines to stderr."""
    if output_format in MACHINE_FORMATS:
        body = dict(result.body)
        if result.problems:
            body["problems"] = [to_plain(problem) for problem in result.problems]
        print(_serialize(body, output_format), file=out)
        return
    if not output_format:
        for line in result.verbatim:
            print(printable_lines(line), file=out)
    elif result.listing is not None and result.listing.rows:
        _console(AirflowConsole(file=out), out).print_as(_rows(result.listing, output_format), output_format)
    stderr_console = _console(Console(file=err, highlight=False), err)
    lines_console = (
        stderr_console if output_format == "plain" and result.listing is not None else _console(Console(file=out), out)
    )
    for line in result.lines:
        lines_console.print(printable_lines(line), markup=False, highlight=False)
    for problem in result.problems:
        stderr_console.print(_problem_text(problem), markup=False)


def list_names(names: Iterable[str]) -> str:
    """The first ten names, and how many more there are."""
    listed = list(names)
    rest = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return ", ".join(listed[:MAX_LISTED]) + rest


def pairs_text(pairs: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs.items())


def _serialize(body: dict[str, Any], output_format: str) -> str:
    """Without Airflow's console, which converts numbers to text and adds colours."""
    if output_format == "json":
        return json.dumps(body, ensure_ascii=True, indent=1)
    text: str = yaml.dump(body, sort_keys=False)
    return text.rstrip()


def _console(console: C, stream: TextIO) -> C:
    """As wide as the terminal; for a pipe, as wide as Airflow's own output."""
    if "COLUMNS" in os.environ:
        console.width = int(os.environ["COLUMNS"])
    elif not stream.isatty():
        console.width = PIPE_COLUMNS
    return console


def _rows(listing: OutputTable, output_format: str) -> list[dict[str, str]]:
    """The table format leaves out columns that are empty in every row, for narrow terminals."""
    cell = _plain_cell if output_format == "plain" else _cell
    rows = [dict(zip(listing.columns, map(cell, row), strict=True)) for row in listing.rows]
    if output_format == "plain":
        return rows
    filled = [name for name in listing.columns if any(row[name] != EMPTY for row in rows)]
    return [{name: row[name] for name in filled} for row in rows]


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    return text.replace("[", "\\[")


def _plain_cell(value: object) -> str:
    return str(value) if isinstance(value, int) else _text(value)


def _text(value: object) -> str:
    encoding = sys.stdout.encoding or "ascii"
    return printable(str(value or EMPTY)).encode(encoding, "replace").decode(encoding)


def _problem_text(problem: Problem) -> str:
    return "\n    ".join([f"{problem.code}  {printable(problem.what)}", *problem.details])
