"""Change records of a feed, put together. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import Understood, undecoded_message
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, RowImages
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.ydb.positions import GONE, THERE, Moment
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

CODEC = "ydb changefeed"
EVERYTHING = ("*",)


class Change:
    """One change of one row, before its images are read. ``facts`` are what the record tells beside the row."""

    def __init__(self, epoch: int, message: Message, table: str, moment: Moment, facts: Mapping[str, Any]) -> None:
        self._epoch = epoch
        self._message = message
        self._table = table
        self._moment = moment
        self._position = dumps({**facts, "channel": message.channel, "offset": message.offset})

    def record(
        self,
        op: Operation,
        images: RowImages,
        key: str | None,
        then: RowImage | None = None,
        now: RowImage | None = None,
        refetch: tuple[str, ...] = (),
        snapshot: str = "none",
    ) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        gone = op is Operation.DELETE
        has_before = gone or op is Operation.UPDATE
        message, moment = self._message, self._moment
        return ChangeRecord(
            self._table,
            op,
            epoch_prefix(self._epoch) + moment.tail(message.offset, GONE if gone else THERE),
            images.schema_id,
            key if has_before else None,
            None if gone else key,
            then.text if then else None,
            now.text if now else None,
            then.complete if then else False,
            now.complete if now else False,
            refetch,
            None,
            None,
            None,
            moment.tx_id,
            None,
            moment.commit_ts,
            self._position,
            f"{message.channel}:{message.offset}",
            snapshot,
            images.warned(),
        )

    def unreadable(self, reason: str, op: str, images: RowImages | None, row: Mapping[str, Any]) -> ChangeRecord:
        """``row``: every value that might be one of its columns."""
        phase = GONE if op == Operation.DELETE else THERE
        tail = self._moment.tail(self._message.offset, phase)
        known = Understood(self._table, op, position=self._position, tail=tail)
        if images is not None:
            left = images.salvage(row)
            images.warned()
            values = {name: json.loads(text) for name, text in left.known.items()}
            schema_id = images.schema_id
            known = Understood(
                self._table, op, left.key, values, left.columns, schema_id, position=self._position, tail=tail
            )
        return undecoded_message(CODEC, self._epoch, self._message, reason, known)
