"""One change of one row, or a truncate, as change records. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    NOT_SENT,
    UNKNOWN_OPERATION,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.debezium import documents, headers
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.envelope import SourceBlock, event_position
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.positions import EventPosition
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout, TableLayouts
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

CODEC = "debezium json"
OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE, "r": Operation.READ}
NEEDS_BEFORE = frozenset({Operation.UPDATE, Operation.DELETE})
DEPARTING, ARRIVING = f"{DEPARTS:02x}", f"{ARRIVES:02x}"
Row = Mapping[str, Any]


class Changes:
    def __init__(self, setting: DecoderSettings, layouts: TableLayouts, placeholders: Placeholders) -> None:
        self._setting = setting
        self._layouts = layouts
        self._placeholders = placeholders
        self._epoch = epoch_prefix(setting.epoch)

    def of(self, message: Message, op: Any, value: ConnectValue, key: ConnectValue, block: SourceBlock) -> list[Item]:
        """Raises DecodeError where not even place and kind of the change are clear."""
        if op == "t":
            if value.payload.get("before") is not None or value.payload.get("after") is not None:
                raise DecodeError(CONTRADICTION, "a truncate with a row")
            place = event_position(block, message.offset, False)
            return [_Records(self._epoch, block, "", place.at, place.ordinal).truncate()]
        operation = OPERATIONS.get(op) if isinstance(op, str) else None
        if operation is None:
            raise DecodeError(UNKNOWN_OPERATION, "op is none that we know")
        place = event_position(block, message.offset, self._is_keyless(block.table, key))
        layout = None
        try:
            names = {} if key.payload is None else as_row(key.payload, "the key")
            layout = self._layouts.of(
                block.table, block.connector, value, tuple(names), anew=block.snapshot == "initial"
            )
            make = _Records(self._epoch, block, layout.images.schema_id, place.at, place.ordinal)
            if block.connector == "mongodb":
                change = documents.read(operation, value.payload, names)
                return [*self._layouts.announced(layout, make.order_key), make.document(operation, change)]
            moved = headers.moved(message)
            before, after = self._rows(operation, value.payload, layout)
            if after is not None and (operation is Operation.UPDATE or moved):
                _require_told(after, layout)
            made = _told(operation, before, after, names, layout, make, moved)
            if warnings := layout.images.warned():
                for record in made:
                    record.warnings = warnings
            return [*self._layouts.announced(layout, make.order_key), *made]
        except DecodeError as error:
            known = self._understood(message, operation, value.payload, block, place)
            if layout is not None:
                known = self._salvaged(known, layout, value.payload)
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), known)]

    def _understood(
        self, message: Message, operation: Operation, payload: Row, block: SourceBlock, place: EventPosition
    ) -> Understood:
        """A half of a move stays one: what waits for one key then waits for the other, too."""
        gone, after = operation is Operation.DELETE, payload.get("after")
        partial = isinstance(after, dict) and len(self._placeholders.known(after)) < len(after)
        half = gone or (operation is Operation.INSERT and (partial or headers.moved(message)))
        return Understood(
            block.table,
            operation.value,
            position=block.position,
            tail=f"{place.at}{place.ordinal}{DEPARTING if gone else ARRIVING}",
            phase=(DEPARTS if gone else ARRIVES) if half else None,
            link_id=self._epoch + place.at if half else None,
        )

    def _is_keyless(self, table: str, key: ConnectValue) -> bool:
        known = self._setting.known(table)
        return key.payload is None if known is None else not known.key

    def _rows(self, operation: Operation, payload: Row, layout: TableLayout) -> tuple[Row | None, Row | None]:
        """What is known of the row before and after; a column that is not there is not known."""
        before, after = payload.get("before"), payload.get("after")
        if operation is Operation.DELETE:
            if after is not None:
                raise DecodeError(CONTRADICTION, "a delete with a row after it")
        elif after is None:
            raise DecodeError(CONTRADICTION, f"an event {operation} without a row after it")
        if before is not None:
            if operation is Operation.INSERT or operation is Operation.READ:
                raise DecodeError(CONTRADICTION, f"an event {operation} with a row before it")
            before = self._placeholders.known(as_row(before, "the row before"))
        if after is not None:
            told = as_row(after, "the row after")
            after = self._placeholders.known(told)
            if (
                before is not None and len(after) < len(told) and layout.whole_before
            ):  # what did not change is as it was
                after = {**before, **after}
        if before is not None and not layout.whole_before:  # what shows NULL need not be NULL
            key = layout.schema.key
            before = {name: value for name, value in before.items() if value is not None or name in key}
        return before, after

    def _salvaged(self, known: Understood, layout: TableLayout, payload: Row) -> Understood:
        row = payload.get("before" if known.op == Operation.DELETE else "after")
        if not isinstance(row, dict):
            return known
        left = layout.images.salvage(self._placeholders.known(row))
        layout.images.warned()
        values = {name: json.loads(text) for name, text in left.known.items()}
        return replace(known, key=left.key, known=values, columns=left.columns, schema_id=layout.images.schema_id)


def _require_told(after: Row, layout: TableLayout) -> None:
    for name in layout.unsure:
        if name in after and after[name] is None:
            raise DecodeError(
                NOT_SENT,
                f"{name} is null, as is an array that was too wide to be sent again: "
                f"ALTER TABLE {layout.table} REPLICA IDENTITY FULL, set `full_before: true` under `source`, and resync",
            )


def _told(
    operation: Operation,
    before: Row | None,
    after: Row | None,
    key: Row,
    layout: TableLayout,
    make: _Records,
    moved: bool,
) -> list[ChangeRecord]:
    """One record; two where an update changes a key that the connector does not know of."""
    images = layout.images
    then = images.image(before) if before is not None else None
    if not layout.schema.key and operation in NEEDS_BEFORE and (then is None or not then.complete):
        raise DecodeError(NO_KEY, "a table without key, and not all of the row before")
    if after is None:
        return [make.gone(_key(before or {}, key, layout), then)]
    now = images.image(after)
    if not layout.schema.key and not now.complete:
        raise DecodeError(NO_KEY, "a table without key, and not all of the row")
    came = _key(after, key, layout)
    if operation is not Operation.UPDATE:
        return [make.came(operation, came, now, operation is Operation.INSERT and (moved or not now.complete))]
    if key and not layout.other_key:
        return [make.changed(came, then, now)]
    if before is not None and _tells(before, layout):
        was = _key(before, {}, layout)
    elif key:
        raise DecodeError(NO_KEY, "the row before does not tell the key that the definition names")
    else:
        was = came
    if was == came:
        return [make.changed(came, then, now)]
    return [make.gone(was, then), make.came(Operation.INSERT, came, now, True)]


def _key(row: Row, key: Row, layout: TableLayout) -> str | None:
    """That of the row. Raises DecodeError where the message has another one."""
    if not layout.schema.key:
        return None
    if not _tells(row, layout):
        return layout.images.key(key)
    told = layout.images.key(row)
    for name, value in key.items():
        if row.get(name) != value and not layout.other_key and told != layout.images.key(key):
            raise DecodeError(NO_KEY, "the key of the message is not that of its row")
    return told


def _tells(row: Row, layout: TableLayout) -> bool:
    return layout.key_names <= row.keys()


class _Records:
    """Makes the change records of one event."""

    def __init__(self, epoch: str, block: SourceBlock, schema_id: str, at: str, ordinal: str) -> None:
        self._link = epoch + at
        self._order = self._link + ordinal
        self._block = block
        self._schema_id = schema_id

    @property
    def order_key(self) -> str:
        """Not behind the first record."""
        return self._order + DEPARTING

    def gone(self, key: str | None, then: RowImage | None) -> ChangeRecord:
        """Any delete might be the half of a move: where headers are lost, only its place tells."""
        if key is None:
            return self._record(Operation.DELETE, DEPARTING, None, None, then, None, None)
        return self._record(Operation.DELETE, DEPARTING, key, None, then, None, DEPARTS)

    def came(self, operation: str, key: str | None, now: RowImage, linked: bool) -> ChangeRecord:
        """An inserted row of which not all is known can only have come from another key."""
        phase = ARRIVES if linked and key is not None else None
        return self._record(operation, ARRIVING, None, key, None, now, phase)

    def changed(self, key: str | None, then: RowImage | None, now: RowImage) -> ChangeRecord:
        return self._record(Operation.UPDATE, ARRIVING, key, key, then, now, None)

    def truncate(self) -> ChangeRecord:
        return self._record(Operation.TRUNCATE, ARRIVING, None, None, None, None, None)

    def document(self, operation: Operation, change: documents.DocumentChange) -> ChangeRecord:
        gone = operation is Operation.DELETE
        record = self._record(
            operation,
            DEPARTING if gone else ARRIVING,
            change.key_before,
            change.key,
            change.before,
            change.after,
            None,
        )
        record.refetch, record.warnings = change.refetch, change.warnings
        return record

    def _record(
        self,
        op: str,
        phase_digits: str,
        key_before: str | None,
        key: str | None,
        then: RowImage | None,
        now: RowImage | None,
        phase: int | None,
    ) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        block = self._block
        order_key = self._order + phase_digits
        return ChangeRecord(
            block.table,
            op,
            order_key,
            self._schema_id,
            key_before,
            key,
            then.text if then else None,
            now.text if now else None,
            then.complete if then else False,
            now.complete if now else False,
            (),
            phase,
            self._link if phase is not None else None,
            block.row_id,
            block.tx_id,
            block.tx_seq,
            block.commit_ts,
            block.position,
            f"{order_key}{key or key_before or ''}",
            block.snapshot,
            (),
        )
