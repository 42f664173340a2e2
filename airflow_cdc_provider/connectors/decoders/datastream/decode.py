"""Datastream events → change records: from a line of JSON, or all records of an Avro file. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from airflow_cdc_provider.connectors.decoders.common import avro_file, exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_VALUE,
    DecodeError,
    PartialDecode,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.jsonable import jsonable
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.datastream.backfills import Backfills
from airflow_cdc_provider.connectors.decoders.datastream.envelope import Envelope, read_envelope, read_head
from airflow_cdc_provider.connectors.decoders.datastream.positions import milliseconds, to_datetime, width
from airflow_cdc_provider.connectors.decoders.datastream.tables import DatastreamTables
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges

CODEC = "datastream event"
SCHEMA = "avro.schema"
"""Header of a message that is one record of an Avro file: the schema of the file."""
NO_KEY_WARNING = "no_key"
"""Neither the event nor a declared schema names a key; the YAML can declare one."""
NOT_IN_POSITION = frozenset({"payload", "uuid"})


class DatastreamDecoder:
    """A message is a line of JSON, an Avro file, or one record of an Avro file with the schema in a header."""

    codec = CODEC
    whole_rows_remedy = ""
    reads_avro = True
    one_table_per_topic = False
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.PARTIAL,
        drop_column=Report.STREAM,
        rename_column=Report.NAME,
        widen=Report.STREAM,
        narrow=Report.SNAPSHOT,
    )

    def __init__(self, settings: DecoderSettings) -> None:
        self._settings = settings
        self._tables = DatastreamTables(settings)
        self._epoch = epoch_prefix(settings.epoch)
        self._backfills = Backfills()

    def snapshot_watch(self) -> Backfills:
        return self._backfills

    def decode(self, message: Message) -> list[Item]:
        value = message.value or b""
        if value.startswith(avro_file.MAGIC):
            return self._file(message, value)
        text = next(
            (header.decode("utf-8", "replace") for name, header in message.headers if name == SCHEMA and header), ""
        )
        try:
            if text:
                event, avro = avro_file.read_record(value, text), json.loads(text)
            else:
                event, avro = as_row(exact_json.parse(value), "the event"), None
        except DecodeError as error:
            return [self._unreadable(message, str(error), PartialDecode())]
        return self._event(message, event, avro, text)

    def _file(self, message: Message, data: bytes) -> list[Item]:
        """Records before a damaged part are decoded; for the rest, the whole file becomes an ``unreadable`` record."""
        items: list[Item] = []
        number = 0
        try:
            file = avro_file.open_file(data)
            header = ((SCHEMA, file.text.encode()),)
            for record in file.records():
                record_message = message._replace(value=record.raw, headers=header, offset=number)
                items += self._event(record_message, record.value, file.schema, file.text)
                number += 1
        except DecodeError as error:
            items.append(self._unreadable(message._replace(offset=number), str(error), PartialDecode()))
        return items or [Ignored(0)]

    def _event(self, message: Message, event: Mapping[str, Any], avro: Any, text: str) -> list[Item]:
        try:
            head = read_head(event)
        except DecodeError as error:
            return [self._unreadable(message, str(error), PartialDecode())]
        if not self._settings.includes(head.table):
            return [Ignored(1, head.table)]
        known = PartialDecode(head.table, width=width(head.source))
        images = None
        try:
            envelope = read_envelope(event, head)
            known = self._with_position(known, envelope)
            images = self._tables.images(head.source, head.table, envelope.key or (), avro, text)
            record = self._record(event, envelope, images)
            if envelope.backfill:
                self._backfills.add(head.table, envelope.at_ms or milliseconds(event.get("read_timestamp")))
            return [*self._tables.announce(images), record]
        except DecodeError as error:
            if images is not None:
                known = self._with_row(known, images, event)
            return [self._unreadable(message, str(error), known)]

    def _record(self, event: Mapping[str, Any], envelope: Envelope, images: RowImages) -> ChangeRecord:
        """Positional arguments, since this runs once per row."""
        is_delete = envelope.op is Operation.DELETE
        image = images.image(envelope.payload)
        key = images.key(envelope.payload)
        if not image.complete and (key is None or not is_delete):
            raise DecodeError(WRONG_VALUE, "the payload lacks columns of the table")
        order = f"{self._epoch}{envelope.position}"
        row_id = envelope.metadata.get("row_id", envelope.metadata.get("rowid"))
        tx_id = envelope.metadata.get("tx_id")
        is_linked = envelope.is_key_change and key is not None
        return ChangeRecord(
            envelope.table,
            envelope.op,
            f"{order}{envelope.ordinal:08x}{DEPARTS if is_delete else ARRIVES:02x}",
            images.schema_id,
            key if is_delete else None,
            None if is_delete else key,
            image.text if is_delete else None,
            None if is_delete else image.text,
            is_delete and image.complete,
            not is_delete,
            (),
            (DEPARTS if is_delete else ARRIVES) if is_linked else None,
            order if is_linked else None,
            row_id if isinstance(row_id, str) else None,
            None if tx_id is None else str(tx_id),
            None,
            to_datetime(envelope.at_ms),
            _position(event),
            envelope.uuid,
            "backfill" if envelope.backfill else "none",
            images.take_warnings() if images.schema.key else (*images.take_warnings(), NO_KEY_WARNING),
        )

    def _with_position(self, known: PartialDecode, envelope: Envelope) -> PartialDecode:
        phase = DEPARTS if envelope.op is Operation.DELETE else ARRIVES
        tail = f"{envelope.position}{envelope.ordinal:08x}{phase:02x}"
        return replace(known, op=envelope.op.value, tail=tail)

    def _with_row(self, known: PartialDecode, images: RowImages, event: Mapping[str, Any]) -> PartialDecode:
        payload = event.get("payload")
        row = payload if isinstance(payload, dict) else {}
        return images.salvage(row, replace(known, position=_position(event)))

    def _unreadable(self, message: Message, reason: str, known: PartialDecode) -> ChangeRecord:
        return undecoded_record(CODEC, self._settings.epoch, message, reason, known)


def _position(event: Mapping[str, Any]) -> str:
    return dumps({name: jsonable(value) for name, value in event.items() if name not in NOT_IN_POSITION})
