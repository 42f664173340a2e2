"""A folder or bucket of event files as a source connector."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import chain

from airflow_cdc_provider.connectors.decoders.common.dead_letters import BY_LINE
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import Boundary, Copy, HoleFound, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.source_features import Restart
from airflow_cdc_provider.connectors.transports.files.companions import choose_with_keys
from airflow_cdc_provider.connectors.transports.files.datastream_api import StreamState, read_stream
from airflow_cdc_provider.connectors.transports.files.file_splits import files_of, read_status, split_window
from airflow_cdc_provider.connectors.transports.files.folder import File, Folder
from airflow_cdc_provider.connectors.transports.files.listing import Listing
from airflow_cdc_provider.connectors.transports.files.options import FilesOptions
from airflow_cdc_provider.connectors.transports.files.positions import START, folder_position, position_of
from airflow_cdc_provider.connectors.transports.files.reading import read_head, read_messages
from airflow_cdc_provider.connectors.transports.files.sampling import age_of, kind_of, sample_files
from airflow_cdc_provider.connectors.transports.messages.check import rule_problems
from airflow_cdc_provider.connectors.transports.messages.decoding import message_reader
from airflow_cdc_provider.connectors.transports.messages.discovery import discover_tables
from airflow_cdc_provider.connectors.transports.messages.empty_copy import empty_copy
from airflow_cdc_provider.connectors.transports.messages.feed_source import FeedSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, raise_problems
from airflow_cdc_provider.core.log.change_log import EXPIRED
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source

READERS = 8
STREAM = "stream"
"""The option of Datastream's events that names their writer."""
ORDERED_BY_OFFSET = "unwrapped"
"""The option for events without a position of their own: lines of different files cannot be ordered."""
WITH_POSITIONS = {
    "debezium": "set `provide.transaction.metadata=true` for the connector",
    "ydb": "add `VIRTUAL_TIMESTAMPS = TRUE` to a new changefeed",
}
"""How events get a position that orders them, by format."""


class FilesSource(FeedSource):
    """A folder is one stream for all its tables, because only the content of a file shows its tables. Each file is read
    once and whole. The connector never removes files."""

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = from_plain(FilesOptions, source.options)
        super().__init__(source, self.options)
        self.folder = Folder(self.options.location, connection)
        self._connection = connection

    def identity(self) -> dict[str, str]:
        return {"location": self.folder.location}

    def tls_warnings(self) -> list[Problem]:
        return [*self.folder.tls_warnings(), *super().tls_warnings()]

    def open_stream(self, tables: Sequence[str]) -> Position:
        """The position before the first file."""
        return position_of(START)

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        stable_ms, lateness_ms = _ms(self.options.stable_for), _ms(self.options.lateness)
        return read_status(position, self._listed, round(time.time() * 1000), stable_ms, lateness_ms)

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """Includes late files that appeared since the limit was determined."""
        return split_window(lo, limit, Listing(self.folder.files))

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        location = self.folder.location
        if "gone" in split.body:
            detail = f"{split.body['gone']} files were removed from {location} before they were read"
            yield HoleFound("", EXPIRED, "", detail)
        reader = message_reader(self.format, tables, epoch, self.read_statements)
        for file in files_of(split):
            chunks = self.folder.read_chunks(file.path)
            if chunks is None:
                yield HoleFound("", EXPIRED, "", f"{file.path} was removed from {location} before it was read")
            else:
                keys = self.folder.read_chunks(file.keys) if file.keys else None
                yield from reader.items(read_messages(file.path, chunks, reader.decoder.reads_avro, keys=keys))
        yield Boundary(split.limit)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """Empty: the files contain the table from its beginning."""
        raise_problems([*self.transport_problems([table]), *rule_problems(table)])
        return empty_copy(table, epoch, sealed)

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        """Files that were removed before they were read cannot be detected."""
        return folder_position(start) == START

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
        tables: Sequence[str],
    ) -> Restart:
        """One file may contain rows of the snapshot and earlier changes."""
        started = {snapshot.topic for snapshot in known if snapshot.place == began.place}
        affected = {snapshot.topic for snapshot in snapshots if snapshot.source == began.source} - started
        return Restart(limit, {table: frozenset([table]) for table in affected}, separable=False)

    @cached_property
    def _listed(self) -> Listing:
        return Listing(self.folder.files)

    @cached_property
    def _stream(self) -> StreamState | None:
        """None if the definition names no stream."""
        stream = self.format.options.get(STREAM)
        return read_stream(stream, self._connection) if stream else None

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return [*self._stream_problems(), *super().check(tables)]

    def _stream_problems(self) -> Sequence[Problem]:
        try:
            problem = self._stream.problem if self._stream is not None else None
        except CheckFailed as error:
            return error.problems
        return [problem] if problem else []

    def silent_since(self) -> datetime | None:
        """A stream that does not run is silent, however short its silence is."""
        if self._stream is not None and not self._stream.is_healthy:
            return self.last_arrival() or self._stream.changed_at
        return super().silent_since()

    def warnings(self) -> list[Problem]:
        """None with the stream of Datastream, which is asked."""
        return [] if self.format.options.get(STREAM) else super().warnings()

    def last_arrival(self) -> datetime | None:
        newest = max((file.modified_ms for file in self._listed), default=None)
        return None if newest is None else datetime.fromtimestamp(newest / 1000, UTC)

    def read_heads(self) -> list[Message]:
        return list(chain.from_iterable(self._samples.values()))

    @cached_property
    def _samples(self) -> dict[File, list[Message]]:
        """As ``_heads_of_files``, as if the order of lines were that of the events."""
        return {file: [one._replace(by_line=False) for one in head] for file, head in self._heads_of_files.items()}

    @cached_property
    def _heads_of_files(self) -> dict[File, list[Message]]:
        """The first messages of some files of each kind."""
        files = choose_with_keys(self._listed, sample_files)
        with ThreadPoolExecutor(READERS) as pool:
            head = partial(read_head, self.folder, whole_avro=self.format.reads_avro)
            return dict(zip(files, pool.map(head, files), strict=True))

    def read_statements(self) -> list[Message]:
        kinds = {kind_of(file.path): True for file in self._samples}
        for file, head in self._samples.items():
            found = discover_tables(self.format, self.format.converter.messages(head), {})
            kinds[kind_of(file.path)] &= bool(found.schema_topics) and not found.tables
        files = sorted((file for file in self._listed if kinds.get(kind_of(file.path))), key=age_of)
        contents = ((file.path, self.folder.read_chunks(file.path)) for file in files)
        read = (read_messages(path, chunks, self.format.reads_avro) for path, chunks in contents if chunks is not None)
        return list(chain.from_iterable(read))

    def transport_problems(self, tables: Sequence[TableTask]) -> Iterator[Problem]:
        if self.format.options.get(ORDERED_BY_OFFSET):
            yield self._unordered("unwrapped: true", "write the files without ExtractNewRecordState")
        elif path := self._path_without_order(tables):
            yield self._unordered(f"{path}: {BY_LINE}", WITH_POSITIONS[self.format.name])

    def _unordered(self, found: str, remedy: str) -> Problem:
        return Problem(
            "SRC076",
            "events in files cannot be ordered",
            where=self.folder.location,
            found=found,
            allowed="complete envelopes with a position that orders them, or with the offsets of their topic",
            do=f"{remedy}, or read the topic",
        )

    def _path_without_order(self, tables: Sequence[TableTask]) -> str:
        """Of a file with an event among its first ones that only its line orders; empty if there is none."""
        reader = message_reader(self.format, tables, 1, self.read_statements)
        for file, head in self._heads_of_files.items():
            items = reader.items(message for message in head if message.by_line)
            contents = (undecoded(item) for item in items if isinstance(item, ChangeRecord))
            if any(content is not None and BY_LINE in content.reason for content in contents):
                return file.path
        return ""


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
