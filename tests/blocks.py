"""The items of a reader, with the records of its blocks one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord


def unpacked(items: Iterable[StreamItem]) -> Iterator[StreamItem]:
    for item in items:
        if isinstance(item, Block):
            assert item.columns.num_rows and item.columns.schema.names == list(FIELDS)
            for row in item.columns.to_pylist():
                yield ChangeRecord(*(tuple(value) if isinstance(value, list) else value for value in row.values()))
        else:
            yield item
