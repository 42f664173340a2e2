"""Messages with their hand-written meaning: the form of the goldens, and helpers to write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, Decoder, DecoderSettings, Item, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

EPOCH = "00000001"


@dataclass(frozen=True)
class Golden:
    """``records``: for each record what of it must be so; a field that is not named may be anything. ``ignored``: how
    many messages are counted instead."""

    name: str
    message: Message
    records: tuple[Mapping[str, Any], ...] = ()
    schema: TableSchema | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    ignored: int = 0

    def setting(self) -> DecoderSettings:
        tables = None
        if self.schema is not None:
            tables = {self.schema.table: CopiedTable(TableRule(self.schema.table), self.schema)}
        return DecoderSettings(1, tables, self.options)


def decoder(kind: str, setting: DecoderSettings) -> Decoder:
    made: Decoder = load_class("format", kind, FORMATS)(setting)
    return made


def records(items: list[Item]) -> list[ChangeRecord]:
    return [item for item in items if isinstance(item, ChangeRecord)]


def as_json(value: object) -> bytes:
    """A Decimal becomes a number with exactly these digits."""
    text = json.dumps(value, separators=(",", ":"), default=lambda number: f"\0{number}\0")
    return text.replace('"\\u0000', "").replace('\\u0000"', "").encode()


def column(name: str, kind: Kind, native: str = "", *digits: int, nullable: bool = True) -> Column:
    return Column(name, LogicalType(kind, *digits), nullable, native)


def key_of(order: str) -> str:
    """An order key of epoch 1, from parts separated by blanks."""
    return EPOCH + order.replace(" ", "")
