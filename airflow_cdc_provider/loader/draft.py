"""The YAML of a draft. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

import yaml

from airflow_cdc_provider.core.assessment.draft import Draft, DraftTable
from airflow_cdc_provider.core.printable import printable
from airflow_cdc_provider.loader.options import Unquoted, parse_value

COMMENT_CHARACTERS = 100
PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./:@+-]*")
SCHEDULE = "*/15 * * * *"


def draft_text(draft: Draft) -> str:
    lines = [*_comments(draft.notes, draft.statements)]
    lines += [f"name: {scalar(draft.name)}", f"schedule: {json.dumps(SCHEDULE)}"]
    lines += ["source:", *_entries(draft.source), "target:", *_entries(draft.target)]
    lines += ["tables:", *(line for table in draft.tables for line in _table(table))]
    lines += ["staging:", *_entries({"location": draft.staging, "retain": "7d"})]
    return "\n".join(lines) + "\n"


def scalar(value: Any) -> str:
    """In flow style. Text is plain if the loader reads it as the same text, else in double quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {scalar(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(scalar, value)) + "]"
    if isinstance(value, Unquoted):
        return str(value)
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and _is_text(value):
        return value
    return yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _is_text(plain: str) -> bool:
    """Whether the loader reads a plain text as that text."""
    try:
        found = parse_value(plain)
    except ValueError:
        return False
    return found == plain and not isinstance(found, Unquoted)


def _entries(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"  {key}: {scalar(value)}" for key, value in values.items())


def _table(table: DraftTable) -> Iterator[str]:
    yield from (f"  {line}" for line in _comments(table.notes, table.statements))
    mark = "# " if table.disabled else ""
    yield f"  {mark}- source: {scalar(table.source)}"
    if table.exclude:
        yield f"  {mark}  columns: {{exclude: {scalar(table.exclude)}}}"


def _comments(notes: Sequence[str], statements: Sequence[str]) -> Iterator[str]:
    for note in notes:
        yield from (f"# {line}" for line in wrap(printable(note), COMMENT_CHARACTERS, break_long_words=False))
    yield from (f"#   {printable(statement)}" for statement in statements)
