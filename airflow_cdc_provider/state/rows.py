"""Rows of the database as the types of the core, and back."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.state_rows import AttemptRow, TableRow

JSON_OF_COMMAND = ("tables", "arguments", "result")


def table_row(row: sa.Row[Any]) -> TableRow:
    return from_plain(TableRow, json.loads(row.body))


def attempt_of(row: sa.Row[Any]) -> AttemptRow:
    return AttemptRow(**{**row._mapping, "tables": tuple(json.loads(row.tables))})


def command_of(row: sa.Row[Any]) -> Command:
    plain = {**row._mapping, **{name: json.loads(row._mapping[name]) for name in JSON_OF_COMMAND}}
    return from_plain(Command, plain)


def command_values(command: Command) -> dict[str, Any]:
    plain = to_plain(command)
    return {**plain, **{name: json.dumps(plain[name]) for name in JSON_OF_COMMAND}}
