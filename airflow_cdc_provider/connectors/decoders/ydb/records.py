"""Builds the change records of a feed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import PartialDecode, undecoded_record
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, RowImages
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.ydb.positions import DELETED, PRESENT, VirtualTimestamp
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

CODEC = "ydb changefeed"
ALL_COLUMNS = ("*",)


class RowChange:
    """A change of a row, before its images are decoded. ``metadata``: the members of the message other than rows."""

    def __init__(
        self, epoch: int, message: Message, table: str, timestamp: VirtualTimestamp, metadata: Mapping[str, Any]
    ) -> None:
        self._epoch = epoch
        self._message = message
        self._table = table
        self._timestamp = timestamp
        self._position = dumps({**metadata, "channel": message.channel, "offset": message.offset})

    def record(
        self,
        op: Operation,
        images: RowImages,
        key: str | None,
        before: RowImage | None = None,
        after: RowImage | None = None,
        refetch: tuple[str, ...] = (),
        snapshot: str = "none",
    ) -> ChangeRecord:
        """Positional arguments, since this runs once per row."""
        is_delete = op is Operation.DELETE
        has_before = is_delete or op is Operation.UPDATE
        message, timestamp = self._message, self._timestamp
        return ChangeRecord(
            self._table,
            op,
            epoch_prefix(self._epoch) + timestamp.tail(message.offset, DELETED if is_delete else PRESENT),
            images.schema_id,
            key if has_before else None,
            None if is_delete else key,
            before.text if before else None,
            after.text if after else None,
            before.complete if before else False,
            after.complete if after else False,
            refetch,
            None,
            None,
            None,
            timestamp.tx_id,
            None,
            timestamp.commit_ts,
            self._position,
            f"{message.channel}:{message.offset}",
            snapshot,
            images.take_warnings(),
        )

    def unreadable(self, reason: str, op: str, images: RowImages | None, row: Mapping[str, Any]) -> ChangeRecord:
        """``row``: all values of the message that may be columns of the row."""
        phase = DELETED if op == Operation.DELETE else PRESENT
        tail = self._timestamp.tail(self._message.offset, phase)
        known = PartialDecode(self._table, op, position=self._position, tail=tail)
        if images is not None:
            known = images.salvage(row, known)
        return undecoded_record(CODEC, self._epoch, self._message, reason, known)
