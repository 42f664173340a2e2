"""The first copy of a table whose feed contains it from its beginning: no rows, at a position before all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.positions import Position, epoch_prefix


@contextmanager
def empty_copy(task: TableTask, epoch: int, position: Position) -> Iterator[Copy]:
    """Its floor is below every record of the epoch."""
    yield Copy(epoch_prefix(epoch), position, task.schema, SplitRead((), 0), 0)
