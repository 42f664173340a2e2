"""The items of one decoded message, and the undecoded record of one that is bad."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from tests.connectors.formats import datastream_goldens
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.debezium_row_goldens import ROWS
from tests.connectors.formats.golden import Golden, decoder, records
from tests.connectors.formats.invariants import require_valid


def decoded(kind: str, message: Message, setting: DecoderSettings) -> list[Item]:
    items = decoder(kind, setting).decode(message)
    require_valid(message, items)
    return items


def refused(kind: str, message: Message, setting: DecoderSettings) -> UndecodedRecord:
    """The undecoded record of the one message."""
    (record,) = records(decoded(kind, message, setting))
    what = undecoded(record)
    assert what is not None, record
    return what


GOOD: dict[str, Golden] = {
    "debezium": ROWS[0],
    "ydb": ydb.GOLDENS[3],
    "datastream": datastream_goldens.GOLDENS[0],
}


def pg_row(row: dict[str, Any], key: Any = None, **source: Any) -> Message:
    return debezium.message(debezium.envelope("c", None, row, debezium.pg(**source)), key)
