"""Datastream's events → change records: a line of JSON, or all records of an Avro file. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import avro_file, exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_VALUE,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.jsonable import jsonable
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.datastream.envelope import Envelope, read_envelope, read_head
from airflow_cdc_provider.connectors.decoders.datastream.positions import shown, width
from airflow_cdc_provider.connectors.decoders.datastream.tables import DatastreamTables
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

CODEC = "datastream event"
SCHEMA = "avro.schema"
"""Header of a message that is one record of an Avro file: what it was written with."""
NO_KEY_TOLD = "no_key"
"""Neither the event nor a description says what identifies a row: the warning, whose remedy is a key of the YAML's."""
TOLD_ELSEWHERE = frozenset({"payload", "uuid"})


class DatastreamDecoder:
    """A message is a line of JSON, a whole Avro file, or one record of such a file under its schema."""

    codec = CODEC
    whole_rows = ""
    reads_avro = True

    def __init__(self, setting: DecoderSettings) -> None:
        self._setting = setting
        self._tables = DatastreamTables(setting)
        self._epoch = epoch_prefix(setting.epoch)

    def decode(self, message: Message) -> list[Item]:
        value = message.value or b""
        if value.startswith(avro_file.MAGIC):
            return self._file(message, value)
        text = next((told.decode("utf-8", "replace") for name, told in message.headers if name == SCHEMA and told), "")
        try:
            if text:
                event, avro = avro_file.one_record(value, text), json.loads(text)
            else:
                event, avro = as_row(exact_json.parse(value), "the event"), None
        except DecodeError as error:
            return [self._unreadable(message, str(error), Understood())]
        return self._event(message, event, avro, text)

    def _file(self, message: Message, data: bytes) -> list[Item]:
        """Where a file is damaged, what stands before is good; the whole file is kept for the rest."""
        items: list[Item] = []
        number = 0
        try:
            file = avro_file.open_file(data)
            header = ((SCHEMA, file.text.encode()),)
            for record in file.records():
                one = message._replace(value=record.raw, headers=header, offset=number)
                items += self._event(one, record.value, file.schema, file.text)
                number += 1
        except DecodeError as error:
            items.append(self._unreadable(message._replace(offset=number), str(error), Understood()))
        return items or [Ignored(0)]

    def _event(self, message: Message, event: Mapping[str, Any], avro: Any, text: str) -> list[Item]:
        try:
            head = read_head(event)
        except DecodeError as error:
            return [self._unreadable(message, str(error), Understood())]
        if not self._setting.wants(head.table):
            return [Ignored(1, head.table)]
        known = Understood(head.table, width=width(head.source))
        images = None
        try:
            envelope = read_envelope(event, head)
            known = self._place(known, envelope)
            images = self._tables.images(head.source, head.table, envelope.key or (), avro, text)
            record = self._record(event, envelope, images)
            return [*self._tables.announced(images), record]
        except DecodeError as error:
            if images is not None:
                known = self._salvaged(known, images, event)
            return [self._unreadable(message, str(error), known)]

    def _record(self, event: Mapping[str, Any], envelope: Envelope, images: RowImages) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        gone = envelope.op is Operation.DELETE
        image = images.image(envelope.payload)
        if not image.complete:
            raise DecodeError(WRONG_VALUE, "an event without all columns of its table")
        key = images.key(envelope.payload)
        order = f"{self._epoch}{envelope.place}"
        row_id = envelope.metadata.get("row_id", envelope.metadata.get("rowid"))
        tx_id = envelope.metadata.get("tx_id")
        half = envelope.half and key is not None
        return ChangeRecord(
            envelope.table,
            envelope.op,
            f"{order}{envelope.ordinal:08x}{DEPARTS if gone else ARRIVES:02x}",
            images.schema_id,
            key if gone else None,
            None if gone else key,
            image.text if gone else None,
            None if gone else image.text,
            gone,
            not gone,
            (),
            (DEPARTS if gone else ARRIVES) if half else None,
            order if half else None,
            row_id if isinstance(row_id, str) else None,
            None if tx_id is None else str(tx_id),
            None,
            shown(envelope.at_ms),
            _position(event),
            envelope.uuid,
            "backfill" if envelope.backfill else "none",
            images.warned() if images.schema.key else (*images.warned(), NO_KEY_TOLD),
        )

    def _place(self, known: Understood, envelope: Envelope) -> Understood:
        phase = DEPARTS if envelope.op is Operation.DELETE else ARRIVES
        tail = f"{envelope.place}{envelope.ordinal:08x}{phase:02x}"
        return Understood(known.table, envelope.op.value, tail=tail, width=known.width)

    def _salvaged(self, known: Understood, images: RowImages, event: Mapping[str, Any]) -> Understood:
        payload = event.get("payload")
        left = images.salvage(payload if isinstance(payload, dict) else {})
        images.warned()
        return Understood(
            known.table,
            known.op,
            left.key,
            {name: json.loads(text) for name, text in left.known.items()},
            left.columns,
            images.schema_id,
            _position(event),
            known.tail,
            known.width,
        )

    def _unreadable(self, message: Message, reason: str, known: Understood) -> ChangeRecord:
        return undecoded_message(CODEC, self._setting.epoch, message, reason, known)


def _position(event: Mapping[str, Any]) -> str:
    return dumps({name: jsonable(one) for name, one in event.items() if name not in TOLD_ELSEWHERE})
