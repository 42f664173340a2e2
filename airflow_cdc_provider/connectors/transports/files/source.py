"""A folder or bucket of files of events as a source connector."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from typing import ClassVar

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import (
    Boundary,
    Copy,
    HoleFound,
    Restart,
    SourceStatus,
    StreamItem,
    StreamSplit,
)
from airflow_cdc_provider.connectors.transports.files.file_splits import files_of, read_status, splits_of
from airflow_cdc_provider.connectors.transports.files.folder import File, Folder
from airflow_cdc_provider.connectors.transports.files.options import read_options
from airflow_cdc_provider.connectors.transports.files.positions import START, folder_position, position_of
from airflow_cdc_provider.connectors.transports.files.reading import head_of, messages_of
from airflow_cdc_provider.connectors.transports.files.sampling import sampled_files
from airflow_cdc_provider.connectors.transports.messages.check import refuse, rule_problems, table_problems
from airflow_cdc_provider.connectors.transports.messages.declared_schemas import declared_schemas
from airflow_cdc_provider.connectors.transports.messages.decoding import Format, reading
from airflow_cdc_provider.connectors.transports.messages.discovery import DiscoveredTables, discovered, undiscovered
from airflow_cdc_provider.connectors.transports.messages.empty_copy import empty_copy
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.change_log import EXPIRED
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import FEED, Specials, may_hold

READERS = 8
ORDERED_BY_OFFSET = "unwrapped"
"""Events that tell no place of their own: lines of different files cannot be put into an order."""


class FilesSource:
    """A folder is one stream for all its tables: which table a file is of, only its content tells. Files are read once,
    whole, and belong to whoever writes them: none is ever removed."""

    unseen: ClassVar[str] = (
        "whatever its connector or feed did not write, schema changes that rewrite rows among it: "
        "docs/guides/event-feeds.md"
    )
    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = True
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options)
        self.format = Format(self.options.format, source.options)
        self.folder = Folder(self.options.location, connection)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        try:
            rowless = undiscovered(self.format, self._heads, self._told.schemas)
            return [*self._format_problems(), *table_problems(tables, self._told, rowless)]
        except CheckFailed as error:
            return list(error.problems)

    def identity(self) -> dict[str, str]:
        return {"location": self.folder.location}

    def tables(self) -> list[TableSchema]:
        """Those that the first lines of the files tell, and those that are declared."""
        return [schema for _, schema in sorted(self._told.schemas.items())]

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, FEED)

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Before the first file, whatever was read before."""
        return position_of(START)

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        stable_ms, lateness_ms = _ms(self.options.stable_for), _ms(self.options.lateness)
        return read_status(position, self._listed, round(time.time() * 1000), stable_ms, lateness_ms)

    def acknowledge(self, position: Position) -> None:
        """Files stay where they are."""

    def drop_stream(self) -> None:
        """Nothing is kept for us."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """As the folder is now: what came late since is read, too."""
        return splits_of(lo, limit, self.folder.files())

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        place = self.folder.location
        if "gone" in partition.body:
            what = f"{partition.body['gone']} files were removed from {place} before they were read"
            yield HoleFound("", EXPIRED, "", what)
        made = reading(self.format, tables, epoch)
        for file in files_of(partition):
            pieces = self.folder.pieces(file.path)
            if pieces is None:
                yield HoleFound("", EXPIRED, "", f"{file.path} was removed from {place} before it was read")
            else:
                yield from made.items(messages_of(file.path, pieces, made.decoder.reads_avro))
        yield Boundary(partition.limit)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return self.format.reread(record, table, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """The files hold the first copy themselves."""
        refuse([*self._format_problems(), *rule_problems(table)])
        return empty_copy(table, epoch, sealed)

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        """Whether somebody has removed files that were never read, nobody can tell."""
        return folder_position(start) == START

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
    ) -> Restart:
        """Rows of the snapshot may lie in one file with what was written before."""
        told = {one.topic for one in known if one.place == began.place}
        tables = {one.topic for one in snapshots if one.source == began.source} - told
        return Restart(limit, {table: frozenset([table]) for table in tables}, separable=False)

    @cached_property
    def _listed(self) -> list[File]:
        return self.folder.files()

    @cached_property
    def _heads(self) -> list[Message]:
        with ThreadPoolExecutor(READERS) as pool:
            head = partial(head_of, self.folder, whole_avro=self.format.reads_avro)
            heads = pool.map(head, sampled_files(self._listed))
            return list(chain.from_iterable(heads))

    @cached_property
    def _told(self) -> DiscoveredTables:
        return discovered(self.format, self._heads, declared_schemas(self.options.schemas))

    def _format_problems(self) -> Iterator[Problem]:
        if self.format.options.get(ORDERED_BY_OFFSET):
            yield Problem(
                "SRC076",
                "unwrapped rows in files have no order",
                where=self.folder.location,
                found="unwrapped: true",
                allowed="whole envelopes",
                do="write the files without ExtractNewRecordState, or read the topic",
            )


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
