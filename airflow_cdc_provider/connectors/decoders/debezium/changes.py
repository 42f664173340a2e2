"""Change records of an envelope with a row change or a truncate. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    NOT_SENT,
    UNKNOWN_OPERATION,
    DecodeError,
    PartialDecode,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.debezium import documents, headers
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.positions import EventPosition
from airflow_cdc_provider.connectors.decoders.debezium.source_block import (
    SourceBlock,
    event_position,
    statement_position,
)
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout, TableLayouts
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

CODEC = "debezium json"
OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE, "r": Operation.READ}
NEEDS_BEFORE = frozenset({Operation.UPDATE, Operation.DELETE})
WITHOUT_DECLARED_KEY = (
    "the before image lacks columns of the declared key: let it be complete (REPLICA IDENTITY FULL of PostgreSQL, "
    "supplemental logging of all columns of Oracle), set `full_before: true` under `source`, and resync"
)
DEPARTING, ARRIVING = f"{DEPARTS:02x}", f"{ARRIVES:02x}"
Row = Mapping[str, Any]


class ChangeDecoder:
    def __init__(self, settings: DecoderSettings, layouts: TableLayouts, placeholders: Placeholders) -> None:
        self._settings = settings
        self._layouts = layouts
        self._placeholders = placeholders
        self._epoch = epoch_prefix(settings.epoch)

    def decode(
        self, message: Message, op: Any, value: ConnectValue, key: ConnectValue, block: SourceBlock
    ) -> list[Item]:
        """Raises DecodeError if not even position and operation can be decoded."""
        if op == "t":
            if value.payload.get("before") is not None or value.payload.get("after") is not None:
                raise DecodeError(CONTRADICTION, "a truncate with a before or after image")
            position = statement_position(block, message.offset)
            return [_RecordBuilder(self._epoch, block, "", position).truncate()]
        operation = OPERATIONS.get(op) if isinstance(op, str) else None
        if operation is None:
            raise DecodeError(UNKNOWN_OPERATION, "op is not a known operation")
        position = event_position(block, message.order, self._is_keyless(block.table, key))
        layout = None
        try:
            key_row = {} if key.payload is None else as_row(key.payload, "the key")
            layout = self._layouts.get(
                block.table, block.connector, value, tuple(key_row), in_snapshot=block.snapshot == "initial"
            )
            builder = _RecordBuilder(self._epoch, block, layout.images.schema_id, position)
            if block.connector == "mongodb":
                change = documents.read(operation, value.payload, key_row)
                return [*self._layouts.announce(layout, builder.order_key), builder.document(operation, change)]
            is_key_change = headers.is_key_change(message)
            before, after = self._rows(operation, value.payload, layout)
            if after is not None and (operation is Operation.UPDATE or is_key_change):
                require_sent(after, layout)
            records = _change_records(operation, before, after, key_row, layout, builder, is_key_change)
            if warnings := layout.images.take_warnings():
                for record in records:
                    record.warnings = warnings
            return [*self._layouts.announce(layout, builder.order_key), *records]
        except DecodeError as error:
            known = self._known_change(message, operation, value.payload, block, position)
            if layout is not None:
                known = self._with_row(known, layout, value.payload)
            return [undecoded_record(CODEC, self._settings.epoch, message, str(error), known)]

    def _known_change(
        self, message: Message, operation: Operation, payload: Row, block: SourceBlock, event: EventPosition
    ) -> PartialDecode:
        """A half of a key change stays linked, so that changes that wait for one key also wait for the other."""
        is_delete, after = operation is Operation.DELETE, payload.get("after")
        is_partial = isinstance(after, dict) and len(self._placeholders.known(after)) < len(after)
        is_linked = is_delete or (operation is Operation.INSERT and (is_partial or headers.is_key_change(message)))
        return PartialDecode(
            block.table,
            operation.value,
            position=block.position,
            tail=f"{event.at}{event.ordinal}{DEPARTING if is_delete and event.phased else ARRIVING}",
            phase=(DEPARTS if is_delete else ARRIVES) if is_linked else None,
            link_id=self._epoch + event.at if is_linked else None,
        )

    def _is_keyless(self, table: str, key: ConnectValue) -> bool:
        schema = self._settings.schema(table)
        return key.payload is None if schema is None else not schema.key

    def _rows(self, operation: Operation, payload: Row, layout: TableLayout) -> tuple[Row | None, Row | None]:
        """The known columns of the row before and after the change."""
        before, after = payload.get("before"), payload.get("after")
        if operation is Operation.DELETE:
            if after is not None:
                raise DecodeError(CONTRADICTION, "delete with an after image")
        elif after is None:
            raise DecodeError(CONTRADICTION, f"{operation} without an after image")
        if before is not None:
            if operation is Operation.INSERT or operation is Operation.READ:
                raise DecodeError(CONTRADICTION, f"{operation} with a before image")
            before = layout.known_before(self._placeholders.known(as_row(before, "before")))
        if after is not None:
            row = as_row(after, "after")
            after = self._placeholders.known(row)
            if before is not None:
                after = _without_nulls(after, layout.unsure_after - before.keys())
                if len(after) < len(row):
                    after = {**before, **after}  # unsent values are unchanged
        return before, after

    def _with_row(self, known: PartialDecode, layout: TableLayout, payload: Row) -> PartialDecode:
        is_delete = known.op == Operation.DELETE
        row = payload.get("before" if is_delete else "after")
        if not isinstance(row, dict):
            return known
        sent = self._placeholders.known(row)
        return layout.images.salvage(layout.known_before(sent) if is_delete else sent, known)


def _without_nulls(row: Row, names: Set[str]) -> Row:
    if not names:
        return row
    return {name: value for name, value in row.items() if value is not None or name not in names}


def require_sent(after: Row, layout: TableLayout) -> None:
    for name in layout.ambiguous_nulls:
        if name in after and after[name] is None:
            raise DecodeError(
                NOT_SENT,
                f"{name} is null, which the connector also sends for a large value that did not change: run "
                f"ALTER TABLE {layout.table} REPLICA IDENTITY FULL, set `full_before: true` under `source`, and resync",
            )


def _change_records(
    operation: Operation,
    before: Row | None,
    after: Row | None,
    key: Row,
    layout: TableLayout,
    builder: _RecordBuilder,
    is_key_change: bool,
) -> list[ChangeRecord]:
    """One record, or two if an update changes a key that only the definition declares."""
    images = layout.images
    before_image = images.image(before) if before is not None else None
    if not layout.schema.key and operation in NEEDS_BEFORE and (before_image is None or not before_image.complete):
        raise DecodeError(NO_KEY, "the table has no key, and the before image is not complete")
    if after is None:
        if key and not any(layout.key_names <= row.keys() for row in (before or {}, key)):
            raise DecodeError(NO_KEY, WITHOUT_DECLARED_KEY)
        return [builder.delete(_key(before or {}, key, layout), before_image)]
    after_image = images.image(after)
    if not layout.schema.key and not after_image.complete:
        raise DecodeError(NO_KEY, "the table has no key, and the after image is not complete")
    new_key = _key(after, key, layout)
    if operation is not Operation.UPDATE:
        is_linked = operation is Operation.INSERT and (is_key_change or not after_image.complete)
        return [builder.arrival(operation, new_key, after_image, is_linked)]
    if key and not layout.key_differs:
        return [builder.update(new_key, before_image, after_image)]
    if before is not None and _has_key(before, layout):
        old_key = _key(before, {}, layout)
    elif key:
        raise DecodeError(NO_KEY, WITHOUT_DECLARED_KEY)
    else:
        old_key = new_key
    if old_key == new_key:
        return [builder.update(new_key, before_image, after_image)]
    return [builder.delete(old_key, before_image), builder.arrival(Operation.INSERT, new_key, after_image, True)]


def _key(row: Row, key: Row, layout: TableLayout) -> str | None:
    """The key of the row. Raises DecodeError if the message key differs."""
    if not layout.schema.key:
        return None
    if not _has_key(row, layout):
        return layout.images.key(key)
    row_key = layout.images.key(row)
    for name, value in key.items():
        if row.get(name) != value and not layout.key_differs and row_key != layout.images.key(key):
            raise DecodeError(NO_KEY, "the message key differs from the key of the row")
    return row_key


def _has_key(row: Row, layout: TableLayout) -> bool:
    return layout.key_names <= row.keys()


class _RecordBuilder:
    """Builds the change records of one event."""

    def __init__(self, epoch: str, block: SourceBlock, schema_id: str, position: EventPosition) -> None:
        self._link = epoch + position.at
        self._order = self._link + position.ordinal
        self._departing = DEPARTING if position.phased else ARRIVING
        self._block = block
        self._schema_id = schema_id

    @property
    def order_key(self) -> str:
        """Not after that of the first record."""
        return self._order + DEPARTING

    def delete(self, key: str | None, before: RowImage | None) -> ChangeRecord:
        """Linked, since any delete may be half of a key change: without headers, only the position shows it."""
        if key is None:
            return self._record(Operation.DELETE, self._departing, None, None, before, None, None)
        return self._record(Operation.DELETE, self._departing, key, None, before, None, DEPARTS)

    def arrival(self, operation: str, key: str | None, after: RowImage, is_linked: bool) -> ChangeRecord:
        """An insert with a partial image is always half of a key change."""
        phase = ARRIVES if is_linked and key is not None else None
        return self._record(operation, ARRIVING, None, key, None, after, phase)

    def update(self, key: str | None, before: RowImage | None, after: RowImage) -> ChangeRecord:
        return self._record(Operation.UPDATE, ARRIVING, key, key, before, after, None)

    def truncate(self) -> ChangeRecord:
        return self._record(Operation.TRUNCATE, ARRIVING, None, None, None, None, None)

    def document(self, operation: Operation, change: documents.DocumentChange) -> ChangeRecord:
        is_delete = operation is Operation.DELETE
        record = self._record(
            operation,
            DEPARTING if is_delete else ARRIVING,
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
        before: RowImage | None,
        after: RowImage | None,
        phase: int | None,
    ) -> ChangeRecord:
        """Positional arguments, since this runs once per row."""
        block = self._block
        order_key = self._order + phase_digits
        return ChangeRecord(
            block.table,
            op,
            order_key,
            self._schema_id,
            key_before,
            key,
            before.text if before else None,
            after.text if after else None,
            before.complete if before else False,
            after.complete if after else False,
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
