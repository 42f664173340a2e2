"""Invariants of the items that a decoder makes of any message, good or bad."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import message_of
from airflow_cdc_provider.connectors.decoders.common.message import Item, Message
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.table.schema import TableSchema

HEX = frozenset("0123456789abcdef")
ARRIVALS = frozenset({Operation.INSERT, Operation.UPDATE, Operation.UPSERT, Operation.REPLACE, Operation.READ})


def require_valid(message: Message, items: list[Item]) -> None:
    """No message is lost, and every record is well-formed."""
    assert any(isinstance(item, ChangeRecord | Ignored) for item in items), "a message is lost"
    schemas = {item.schema_id: item for item in items if isinstance(item, TableSchema)}
    for item in items:
        if isinstance(item, ChangeRecord):
            _record(message, item, schemas)


def _record(message: Message, record: ChangeRecord, schemas: dict[str, TableSchema]) -> None:
    assert len(record.order_key) >= 24 and set(record.order_key) <= HEX, record.order_key
    assert isinstance(json.loads(record.position), dict)
    for text in (
        record.before,
        record.after,
        record.key,
        record.key_before,
        record.position,
        record.event_id,
        record.tx_id,
    ):
        if text is not None:
            text.encode()  # half a surrogate pair would fail when written
    if record.op == Operation.UNREADABLE:
        _unreadable(message, record)
    elif record.op not in CONTROL_OPERATIONS:
        assert record.table
        _row(record, schemas.get(record.schema_id))


def _unreadable(message: Message, record: ChangeRecord) -> None:
    what, kept = undecoded(record), message_of(record)
    assert what is not None and what.reason.startswith("EVT"), what
    assert kept is not None
    in_a_file = (message.value or b"").startswith(b"Obj\x01")
    assert kept == message or (in_a_file and kept.channel == message.channel), "bytes are missing"


def _row(record: ChangeRecord, schema: TableSchema | None) -> None:
    keyed = record.key is not None or record.key_before is not None
    for text, complete in ((record.before, record.before_complete), (record.after, record.after_complete)):
        assert text is not None or not complete
        if text is not None:
            image = json.loads(text)
            assert isinstance(image, dict)
            if schema is not None:
                assert image.keys() <= set(schema.names)
                assert not complete or image.keys() == set(schema.names)
    if record.op in ARRIVALS:
        assert record.after is not None
        assert keyed or schema is None or not schema.key
    else:
        assert record.op == Operation.DELETE and record.after is None and record.key is None
        assert record.key_before is not None or record.before_complete
    for key in (record.key, record.key_before):
        assert key is None or isinstance(json.loads(key), list)
    assert (record.phase is None) == (record.link_id is None)


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar of a JSON value, names of members too."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    else:
        yield value
