"""The epilog of ``airflow cdc decode --help``: source types, their options, and the format of the schema file."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.connectors import FORMATS, SAVED
from airflow_cdc_provider.core.table.schema import Kind
from airflow_cdc_provider.loader.types import options_class

SCHEMA = """\
schema file (--schema): a table schema or a list of them, as in the folder schemas/ of staging
  {"table": "shop.orders", "key": ["id"], "columns": [
    {"name": "id", "type": {"kind": "int64"}},
    {"name": "price", "type": {"kind": "decimal", "precision": 10, "scale": 2}},
    {"name": "at", "type": {"kind": "timestamp"}, "native": "int64 io.debezium.time.MicroTimestamp"}]}
"""
SCHEMA_NOTES = """\
  native (for messages without a schema): the type at the source, as YDB names it (Uint64, Decimal(22,9)),
  or for debezium the Connect type with its semantic name, as above
  salesforce has a format of its own: {"events": {schema id: Avro schema}, "objects": [response of describe]}"""


def _source_types() -> Iterator[str]:
    yield "source types and their options (--option KEY=VALUE)"
    for kind in sorted(SAVED):
        option_lines = list(_option_lines(options_class("formats", kind))) if kind in FORMATS else []
        yield f"  {kind}" if option_lines else f"  {kind}: no options"
        yield from option_lines


def _option_lines(options: Any) -> Iterator[str]:
    hints = typing.get_type_hints(options)
    for option in fields(options):
        yield f"    {option.name}: {str(option.metadata['doc']).replace('`', '')}{_allowed_values(hints[option.name])}"


def _allowed_values(hint: Any) -> str:
    if hint is bool:
        return " Allowed values: true, false."
    return f" Allowed values: {', '.join(filter(None, hint))}." if issubclass(hint, StrEnum) else ""


EPILOG = "\n".join((*_source_types(), "", f"{SCHEMA}  kinds: {', '.join(Kind)}", SCHEMA_NOTES)).replace("[", "\\[")
