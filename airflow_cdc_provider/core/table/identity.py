"""What a source's catalogue says a table and its columns are, apart from their names and types. Pure.

Some statements rewrite or relabel rows without a trace in the stream, in names or in types: two columns swap their
names, a column is dropped and added again, ``ALTER … TYPE … USING``, a renamed enum label, an attached partition. The
identity that a copy was made under is kept in its control record and compared with the catalogue in each run. Of a
source that is polled the stream is what its timestamps show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class ColumnIdentity:
    """``number`` is never used again within the table. ``type`` names the output format of the values; lengths do not
    count. ``altered`` is another text after each statement that may have set the column's values in a rewrite.
    ``filled``: the catalogue holds the value of rows older than the column. ``unknown_fill``: such rows hold a value
    that the catalogue does not have. ``in_rows``: only the rows themselves show which value such rows hold.

    ``length``: most characters or digits of a value, None where there is no limit. ``labels``: the values that the type
    lists. ``expression``: what the column is computed of."""

    number: int
    type: str
    altered: str = ""
    filled: bool = False
    unknown_fill: bool = False
    in_rows: bool = False
    length: int | None = None
    labels: tuple[str, ...] = ()
    expression: str = ""


@dataclass(frozen=True)
class TablePartition:
    """``file`` is another text after each rewrite of the rows, ``joined`` after each attachment to the table."""

    name: str
    file: str
    joined: str = ""


@dataclass(frozen=True)
class TableIdentity:
    """``table`` tells the table from every other one, also of the same name. ``last_number``: no column that exists now
    or existed before has a higher one. ``labels`` are those of the enum types in use, ``composites`` the attributes of
    the composite types in use, by the catalogue's own ids; ``partitions`` likewise, of which a table that is not
    partitioned has one: itself. ``positional``: numbers of columns are positions, and change where another column goes
    or comes before. ``membership`` is another text each time that the stream begins to carry the table; empty where it
    does not, and of a source that has no such lists."""

    table: str
    columns: Mapping[str, ColumnIdentity]
    last_number: int
    labels: Mapping[str, str] = field(default_factory=dict)
    composites: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, TablePartition] = field(default_factory=dict)
    positional: bool = False
    membership: str = ""


@dataclass(frozen=True)
class UnloggedChanges:
    """What happened to a table that its stream does not carry, in words.

    ``columns``: columns are not what they were. ``rows``: rows came, went or changed. ``attached``: ids of partitions
    that are new, ``detached``: names of those that are gone. ``added``: new columns whose values in older rows only the
    rows show. ``rewritten``: rows were written anew, most often with the values they had (VACUUM FULL).
    ``recomputed``: in such a rewrite columns may have got other values (ALTER COLUMN … TYPE … USING).
    """

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    detached: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rewritten: bool = False
    recomputed: bool = False

    def __bool__(self) -> bool:
        return bool(self.columns or self.rows or self.attached or self.detached or self.added or self.rewritten)


NO_UNLOGGED_CHANGES = UnloggedChanges()


def unlogged_changes(
    known: TableIdentity, now: TableIdentity, held: TableSchema, wanted: TableSchema
) -> UnloggedChanges:
    """``held`` is the schema of the copy made under ``known``, ``wanted`` what is copied of the table as it is now. A
    TRUNCATE rewrites a table, too: whether it was one, the stream tells."""
    if known.table != now.table:
        return UnloggedChanges(rows=("the table was replaced by another one of the same name",))
    rewritten = any(
        now.partitions[id].file != known.partitions[id].file or now.partitions[id].joined != known.partitions[id].joined
        for id in known.partitions.keys() & now.partitions.keys()
    )
    return UnloggedChanges(
        columns=tuple(chain(_changed_columns(known, now, held, wanted), _added_columns(known, now, wanted, rewritten))),
        rows=tuple(chain(_not_carried(known, now), _relabelled(known, now))),
        attached=tuple(sorted(now.partitions.keys() - known.partitions.keys())),
        detached=tuple(known.partitions[id].name for id in sorted(known.partitions.keys() - now.partitions.keys())),
        added=_added_in_rows(now, held, wanted),
        rewritten=rewritten,
        recomputed=rewritten and any(_altered(known, now, name) for name in held.names),
    )


def _changed_columns(known: TableIdentity, now: TableIdentity, held: TableSchema, wanted: TableSchema) -> Iterator[str]:
    names = {column.number: name for name, column in now.columns.items()}
    if now.positional and (moved := _moved(known, now, held)):
        yield f"columns {', '.join(moved)} changed places or names"
    for name in held.names:
        before, after = known.columns.get(name), now.columns.get(name)
        if before is None:
            if after is not None:  # dropped before, without a change of a row that would have told
                yield f"column {name} was dropped and another one was added under its name"
            continue
        renamed = name if now.positional else names.get(before.number, name)
        if renamed != name:
            yield f"column {name} was renamed to {renamed}"
        elif after is not None and after.number != before.number and not now.positional:
            yield f"column {name} was dropped and another one was added under its name"
        elif after is not None and after.type != before.type:
            yield f"column {name} changed from {_native(held, name)} to {_native(wanted, name)}"
        elif after is not None:
            yield from _other_values(name, before, after)


def _moved(known: TableIdentity, now: TableIdentity, held: TableSchema) -> list[str]:
    """Copied columns whose order among those that are still there is another one."""
    orders = [
        sorted(known.columns.keys() & now.columns.keys(), key=lambda name: (one.columns[name].number, name))
        for one in (known, now)
    ]
    return [before for before, after in zip(*orders, strict=True) if before != after and before in held.names]


def _other_values(name: str, before: ColumnIdentity, after: ColumnIdentity) -> Iterator[str]:
    """A statement that takes room or labels away may have changed values that had them."""
    if after.expression and after.expression != before.expression:
        yield f"column {name} is computed in another way"
    if after.length is not None and (before.length is None or after.length < before.length):
        yield f"column {name} has room for {after.length} characters or digits, and had for {before.length or 'any'}"
    if after.labels and (gone := [label for label in before.labels if label not in after.labels]):
        yield f"column {name} lost the labels {', '.join(gone)}"


def _added_in_rows(now: TableIdentity, held: TableSchema, wanted: TableSchema) -> tuple[str, ...]:
    """What the copy holds counts, not what the catalogue said before: it may have been read behind the column."""
    added = (name for name in wanted.names if name not in held.names and name in now.columns)
    return tuple(name for name in added if now.columns[name].in_rows)


def _added_columns(known: TableIdentity, now: TableIdentity, wanted: TableSchema, rewritten: bool) -> Iterator[str]:
    """Rows older than the column hold what the catalogue says, or NULL."""
    for name in wanted.names:
        column = now.columns.get(name)
        if column is None or name in known.columns or column.in_rows:
            continue
        if column.number in {before.number for before in known.columns.values()}:
            continue  # a renamed column, named already
        if column.number <= known.last_number:
            yield f"column {name} was a generated one and is an ordinary one now"
        elif not column.filled and (column.unknown_fill or rewritten):
            yield f"the values of column {name} in rows older than the column are not in the stream"


def _not_carried(known: TableIdentity, now: TableIdentity) -> Iterator[str]:
    if known.membership and known.membership != now.membership:
        yield "the stream did not carry its changes for a while"


def _relabelled(known: TableIdentity, now: TableIdentity) -> Iterator[str]:
    for id in sorted(known.labels.keys() & now.labels.keys()):
        if known.labels[id] != now.labels[id]:
            yield f"enum label {known.labels[id]} was renamed to {now.labels[id]}"
    if any(known.composites[id] != now.composites[id] for id in known.composites.keys() & now.composites.keys()):
        yield "the attributes of a composite type changed"


def _altered(known: TableIdentity, now: TableIdentity, name: str) -> bool:
    before, after = known.columns.get(name), now.columns.get(name)
    return before is not None and after is not None and before.altered != after.altered


def _native(schema: TableSchema, name: str) -> str:
    column = next((column for column in schema.columns if column.name == name), None)
    return (column.native or str(column.type)) if column else "another type"
