"""The parts of a batch that exceeds one transaction: they are saved in the database before the first one is applied.

A part is applied by one transaction, which also marks it. So a part is applied once, by whichever process, and the
database alone has what is needed to end the merge.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.core.table.merge_plan import GONE, OP, MergePlan
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.changes import Counts, Verb
from airflow_cdc_provider.targets.spanner.control import Read
from airflow_cdc_provider.targets.spanner.names import PARTS
from airflow_cdc_provider.targets.spanner.rows import KeyedRows, Stored, least_order
from airflow_cdc_provider.targets.spanner.session import Session
from airflow_cdc_provider.targets.spanner.sizes import (
    CONTROL_MUTATIONS,
    PART_BYTES,
    bytes_of,
    mutations_of,
    split,
)
from airflow_cdc_provider.targets.spanner.values import NULL, number_value, text_of, text_value

SLICE_BYTES = 9 << 20
"""A value of BYTES has at most 10 MiB."""

SWEEP, FIRST, SECOND = -1, 0, 1
"""Phases, which follow one another. Rows without a key leave in the first one and arrive in the second one."""


@dataclass(frozen=True, order=True)
class PartKey:
    """``task``: what saved the part. A task that ran twice has saved its rows twice, and one of them is applied."""

    phase: int
    task: str
    number: int


@dataclass(frozen=True)
class SavedRows:
    """``least``: the least order key; empty if there is none. ``refused``: rows that require a row that the target
    lacks."""

    rows: int = 0
    parts: tuple[PartKey, ...] = ()
    least: str = ""
    refused: int = 0

    def __add__(self, other: SavedRows) -> SavedRows:
        least = min(filter(None, (self.least, other.least)), default="")
        return SavedRows(self.rows + other.rows, (*self.parts, *other.parts), least, self.refused + other.refused)


@dataclass(frozen=True)
class PartsOf:
    """The parts of one merge: those with this ``nonce``."""

    target_table: str
    nonce: str

    def prefix(self, *more: Value) -> Any:
        return mutations.prefixes([[text_value(self.target_table), text_value(self.nonce), *more]])

    def key(self, part: PartKey) -> list[Value]:
        return [number_value(part.phase), text_value(part.task), number_value(part.number)]

    def row(self, part: PartKey, number: int, **columns: Value) -> Any:
        """A mutation that inserts a slice of a part or updates it."""
        phase, task, part_number = self.key(part)
        named = {
            "target_table": text_value(self.target_table),
            "nonce": text_value(self.nonce),
            "phase": phase,
            "task": task,
            "number": part_number,
            "slice": number_value(number),
        }
        return mutations.write_row(Verb.UPSERT, PARTS, named | columns)

    def without_others(self) -> list[Any]:
        """Mutations that remove the parts of other merges, which will not begin any more."""
        table, nonce = text_value(self.target_table), text_value(self.nonce)
        return [mutations.delete(PARTS, keys) for keys in mutations.all_but([table], nonce)]

    def moved(self, part: PartKey, position: Sequence[Value] | None, counts: Counts) -> Any:
        """A mutation that writes how far a sweep is; None: it has ended."""
        ended = Value(bool_value=position is None)
        content = NULL if position is None else _bytes_value(ListValue(values=position).SerializeToString())
        return self.row(part, 0, applied=ended, content=content, **_numbers(counts))

    def marked(self, part: PartKey, counts: Counts) -> list[Any]:
        """Mutations that mark a part as applied and remove its content."""
        return [
            mutations.delete(PARTS, self.prefix(*self.key(part))),
            self.row(part, 0, applied=Value(bool_value=True), **_numbers(counts)),
        ]


def save(
    session: Session, parts: PartsOf, stored: Stored, plan: MergePlan, task: str, tables: Iterable[pa.Table], most: int
) -> SavedRows:
    """Save rows in parts of at most ``most`` mutations. ``tables``: each is divided by itself."""
    saved = SavedRows()
    for table in tables:
        for phase, rows in _phases(table, stored):
            counts, sizes = mutations_of(rows, stored, plan), bytes_of(rows)
            for start, end in split(counts, sizes, most - CONTROL_MUTATIONS, PART_BYTES):
                part = PartKey(phase, task, len(saved.parts))
                found = rows.slice(start, end - start)
                _save_part(session, parts, part, found)
                refused = _refused(session, stored, plan, found)
                saved += SavedRows(len(found), (part,), least_order(found, stored), refused)
    return saved


def load(read: Read, parts: PartsOf, part: PartKey) -> pa.Table | None:
    """The rows of a part; None if it is applied, or gone."""
    content = b""
    for applied, one in read(PARTS, ("applied", "content"), parts.prefix(*parts.key(part))):
        if applied.bool_value:
            return None
        content += b64decode(one.string_value)
    return pa.ipc.open_stream(content).read_all() if content else None


def unapplied(read: Read, parts: PartsOf, tasks: Container[str]) -> list[PartKey]:
    """The parts of these tasks, in the order in which they are applied."""
    columns = ("phase", "task", "number", "slice", "applied")
    found = (
        (PartKey(_int(phase), str(text_of(task)), _int(number)), _int(piece), applied.bool_value)
        for phase, task, number, piece, applied in read(PARTS, columns, parts.prefix())
    )
    return [part for part, piece, applied in found if part.task in tasks and piece == 0 and not applied]


def applied_counts(read: Read, parts: PartsOf) -> tuple[Counts, int]:
    """The sum over all parts that are applied, and their number."""
    total, number = Counts(), 0
    for applied, *counts in read(PARTS, ("applied", "inserted", "updated", "deleted"), parts.prefix()):
        if applied.bool_value:
            total += Counts(*map(_int, counts))
            number += 1
    return total, number


def load_position(read: Read, parts: PartsOf, part: PartKey) -> tuple[bool, list[Value] | None, Counts]:
    """Whether a sweep has ended, the key that it has reached, and what it has done so far."""
    columns = ("applied", "content", "inserted", "updated", "deleted")
    ((applied, content, *counts),) = read(PARTS, columns, parts.prefix(*parts.key(part)))
    position = text_of(content)
    reached = None if position is None else list(ListValue.FromString(b64decode(str(position))).values)
    return applied.bool_value, reached, Counts(*map(_int, counts))


def _phases(table: pa.Table, stored: Stored) -> Iterator[tuple[int, pa.Table]]:
    if stored.schema.key:
        yield SECOND, table
        return
    leaving = pc.equal(table[OP], GONE)
    yield FIRST, table.filter(leaving)
    yield SECOND, table.filter(pc.invert(leaving))


def _save_part(session: Session, parts: PartsOf, part: PartKey, rows: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows.combine_chunks())
    content = sink.getvalue().to_pybytes()
    slices = [content[start : start + SLICE_BYTES] for start in range(0, len(content), SLICE_BYTES)]
    session.write(
        [
            parts.row(part, number, content=_bytes_value(piece), applied=Value(bool_value=False))
            for number, piece in enumerate(slices)
        ]
    )


def _refused(session: Session, stored: Stored, plan: MergePlan, rows: pa.Table) -> int:
    """Behind a truncate no row is required, except behind a late one."""
    emptied = plan.truncated and not plan.truncated_at
    if not plan.partial or emptied or not stored.schema.key:
        return 0
    keyed = KeyedRows(stored, rows)
    return keyed.apply(plan, keyed.found(session.read)).refused


def _numbers(counts: Counts) -> dict[str, Value]:
    return {name: number_value(getattr(counts, name)) for name in ("inserted", "updated", "deleted")}


def _int(value: Value) -> int:
    return int(str(text_of(value) or 0))


def _bytes_value(content: bytes) -> Value:
    return Value(string_value=b64encode(content).decode())
