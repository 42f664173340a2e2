"""What a source's catalogue says a table and its columns are, apart from their names and types. Pure.

Some statements rewrite or relabel rows without a trace in the stream, in names or in types: two columns swap their
names, a column is dropped and added again, ``ALTER … TYPE … USING``, a renamed enum label, an attached partition. The
identity that a copy was made under is kept in its control record and compared with the catalogue in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from airflow_cdc_provider.core.tables import TableSchema


@dataclass(frozen=True)
class ColumnIdentity:
    """``number`` is never used again within the table. ``type`` names the output format of the values; lengths do not
    count. ``altered`` is another text after each statement that may have set the column's values in a rewrite.
    ``filled``: the catalogue holds the value of rows older than the column. ``unknown_fill``: such rows hold a value
    that the catalogue does not have."""

    number: int
    type: str
    altered: str = ""
    filled: bool = False
    unknown_fill: bool = False


@dataclass(frozen=True)
class Partition:
    """``file`` is another text after each rewrite of the rows, ``joined`` after each attachment to the table."""

    name: str
    file: str
    joined: str = ""


@dataclass(frozen=True)
class TableIdentity:
    """``table`` tells the table from every other one, also of the same name. ``last_number``: no column that exists now
    or existed before has a higher one. ``labels`` are those of the enum types in use, ``composites`` the attributes of
    the composite types in use, by the catalogue's own ids; ``partitions`` likewise, of which a table that is not
    partitioned has one: itself."""

    table: str
    columns: Mapping[str, ColumnIdentity]
    last_number: int
    labels: Mapping[str, str] = field(default_factory=dict)
    composites: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)


@dataclass(frozen=True)
class UnseenChanges:
    """What happened to a table that its stream does not carry, in words.

    ``columns``: columns are not what they were. ``rows``: rows came, went or changed. ``attached``: ids of partitions
    that are new. ``rewritten``: rows were written anew, most often with the values they had (VACUUM FULL).
    ``recomputed``: in such a rewrite columns may have got other values (ALTER COLUMN … TYPE … USING).
    """

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    rewritten: bool = False
    recomputed: bool = False

    def __bool__(self) -> bool:
        return bool(self.columns or self.rows or self.attached or self.rewritten)


NOTHING_UNSEEN = UnseenChanges()


def unseen_changes(known: TableIdentity, now: TableIdentity, held: TableSchema, wanted: TableSchema) -> UnseenChanges:
    """``held`` is the schema of the copy made under ``known``, ``wanted`` what is copied of the table as it is now. A
    TRUNCATE rewrites a table, too: whether it was one, the stream tells."""
    if known.table != now.table:
        return UnseenChanges(rows=("the table was replaced by another one of the same name",))
    rewritten = any(
        now.partitions[id].file != known.partitions[id].file or now.partitions[id].joined != known.partitions[id].joined
        for id in known.partitions.keys() & now.partitions.keys()
    )
    return UnseenChanges(
        columns=tuple(chain(_changed_columns(known, now, held, wanted), _added_columns(known, now, wanted, rewritten))),
        rows=tuple(chain(_relabelled(known, now), _detached(known, now))),
        attached=tuple(sorted(now.partitions.keys() - known.partitions.keys())),
        rewritten=rewritten,
        recomputed=rewritten and any(_altered(known, now, name) for name in held.names),
    )


def _changed_columns(known: TableIdentity, now: TableIdentity, held: TableSchema, wanted: TableSchema) -> Iterator[str]:
    names = {column.number: name for name, column in now.columns.items()}
    for name in held.names:
        if name not in known.columns:
            continue
        before, after = known.columns[name], now.columns.get(name)
        renamed = names.get(before.number, name)
        if renamed != name:
            yield f"column {name} was renamed to {renamed}"
        elif after is not None and after.number != before.number:
            yield f"column {name} was dropped and another one was added under its name"
        elif after is not None and after.type != before.type:
            yield f"column {name} changed from {_native(held, name)} to {_native(wanted, name)}"


def _added_columns(known: TableIdentity, now: TableIdentity, wanted: TableSchema, rewritten: bool) -> Iterator[str]:
    """Rows older than the column hold what the catalogue says, or NULL."""
    for name in wanted.names:
        column = now.columns.get(name)
        if column is None or name in known.columns:
            continue
        if column.number in {before.number for before in known.columns.values()}:
            continue  # a renamed column, named already
        if column.number <= known.last_number:
            yield f"column {name} was a generated one and is an ordinary one now"
        elif not column.filled and (column.unknown_fill or rewritten):
            yield f"the values of column {name} in rows older than the column are not in the stream"


def _relabelled(known: TableIdentity, now: TableIdentity) -> Iterator[str]:
    for id in sorted(known.labels.keys() & now.labels.keys()):
        if known.labels[id] != now.labels[id]:
            yield f"enum label {known.labels[id]} was renamed to {now.labels[id]}"
    if any(known.composites[id] != now.composites[id] for id in known.composites.keys() & now.composites.keys()):
        yield "the attributes of a composite type changed"


def _detached(known: TableIdentity, now: TableIdentity) -> Iterator[str]:
    for id in sorted(known.partitions.keys() - now.partitions.keys()):
        yield f"partition {known.partitions[id].name} was detached or dropped with its rows"


def _altered(known: TableIdentity, now: TableIdentity, name: str) -> bool:
    before, after = known.columns.get(name), now.columns.get(name)
    return before is not None and after is not None and before.altered != after.altered


def _native(schema: TableSchema, name: str) -> str:
    column = next((column for column in schema.columns if column.name == name), None)
    return (column.native or str(column.type)) if column else "another type"
