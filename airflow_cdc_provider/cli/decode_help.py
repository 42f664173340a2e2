"""What ``airflow cdc decode --help`` says of source types, their keys, and the file of schemas."""

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
schema file (--schema): a table schema, or a list of such, as staging keeps them under schemas/
  {"table": "shop.orders", "key": ["id"], "columns": [
    {"name": "id", "type": {"kind": "int64"}},
    {"name": "price", "type": {"kind": "decimal", "precision": 10, "scale": 2}},
    {"name": "at", "type": {"kind": "timestamp"}, "native": "int64 io.debezium.time.MicroTimestamp"}]}
"""
NATIVE = """\
  native (where messages bring no schema): the source's own type, as YDB names it (Uint64, Decimal(22,9)),
  or for debezium the Connect type with its semantic name, as above
  salesforce takes another file: {"events": {schema id: Avro schema}, "objects": [answer of describe]}"""


def _types() -> Iterator[str]:
    yield "source types and their keys (--option KEY=VALUE)"
    for kind in sorted(SAVED):
        keys = list(_keys(options_class("formats", kind))) if kind in FORMATS else []
        yield f"  {kind}" if keys else f"  {kind}: no keys"
        yield from keys


def _keys(options: Any) -> Iterator[str]:
    hints = typing.get_type_hints(options)
    for key in fields(options):
        yield f"    {key.name}: {str(key.metadata['doc']).replace('`', '')}{_values(hints[key.name])}"


def _values(hint: Any) -> str:
    if hint is bool:
        return " true or false."
    return f" One of {', '.join(filter(None, hint))}." if issubclass(hint, StrEnum) else ""


EPILOG = "\n".join((*_types(), "", f"{SCHEMA}  kinds: {', '.join(Kind)}", NATIVE)).replace("[", "\\[")
