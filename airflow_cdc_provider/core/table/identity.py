"""The identity of a table and its columns in the source's catalog, beyond names and types. Pure.

Some statements rewrite or relabel rows without a trace in the stream, in names or in types: swapped column names, a
column that is dropped and added again, ``ALTER … TYPE … USING``, a renamed enum label, an attached partition. The
control record of a copy contains the identity at the time of the copy, and every run compares it with the catalog.
The stream of a polled source contains only what its timestamps show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class ColumnIdentity:
    """``number``: never reused within the table. ``type``: the output format of the values, without lengths.
    ``altered``: changes with each statement that may have set the column's values in a rewrite. For rows older than the
    column: ``filled``: the catalog has their value; ``unknown_fill``: they have a value that the catalog does not
    have; ``in_rows``: only the rows themselves have it.

    ``length``: maximum characters or digits, None without a limit. ``labels``: the values of an enumerated type.
    ``expression``: of a computed column."""

    number: int
    type: str
    altered: str = ""
    filled: bool = False
    unknown_fill: bool = False
    in_rows: bool = False
    length: int | None = None
    labels: tuple[str, ...] = ()
    expression: str = ""


THE_TABLE = ""
"""The key of a table that counts as one partition, whatever partitions it has."""


@dataclass(frozen=True)
class TablePartition:
    """``file`` changes with each rewrite of the rows, ``joined`` with each attachment to the table."""

    name: str
    file: str
    joined: str = ""


@dataclass(frozen=True)
class StreamSettings:
    """Which changes of a table the stream carries. ``carried``: the settings that decide that; ``others``: those that a
    statement may change without an effect on the table; ``altered``: a number that changes with each statement about
    any of them, also if it is taken back."""

    carried: str
    others: str = ""
    altered: str = ""


@dataclass(frozen=True)
class TableIdentity:
    """``table``: the id of the table, different for a new table of the same name. ``last_number``: the highest number
    of all present and former columns. ``labels``: of the enum types in use; ``composites``: attributes of the composite
    types in use; ``partitions``: a table that is not partitioned has one, itself; all three by the catalog's ids.
    ``label_versions``: a number per label that changes with each new name.
    ``positional``: column numbers are positions, which change if an earlier column is added or dropped.
    ``membership``: changes each time that the stream starts to carry the table; empty if it does not, and for sources
    without such lists. ``sent``: which of its changes the stream carries; None if that is not known. ``key``: changes
    each time that the table gets a primary key. ``form``: what the reader takes of a table, 0 in former records. Two
    forms are compared in what both have."""

    table: str
    columns: Mapping[str, ColumnIdentity]
    last_number: int
    labels: Mapping[str, str] = field(default_factory=dict)
    composites: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, TablePartition] = field(default_factory=dict)
    positional: bool = False
    membership: str = ""
    sent: StreamSettings | None = None
    label_versions: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    form: int = 0

    @property
    def table_id(self) -> str:
        """``table``, or the id of the file where the catalog has no id of tables: a table that is rebuilt has a new
        file."""
        return self.table or (self.partitions[THE_TABLE].file if THE_TABLE in self.partitions else "")


ALTERED = "what the stream carries was altered, and may have lacked changes for some time"
OTHER_KEY = "the table got its primary key anew: rows may have had equal keys before"
RECOMPUTED = "the table was rewritten by a statement that may have set the values of a column"


@dataclass(frozen=True)
class UnloggedChanges:
    """Changes of a table that its stream does not carry.

    ``columns`` and ``rows``: descriptions of changed columns and rows. ``attached``: ids of new partitions;
    ``detached``: names of removed ones. ``added``: new columns whose values in older rows only the rows have.
    ``rewritten``: the rows were rewritten, in most cases with equal values (VACUUM FULL). ``recomputed``: the rewrite
    may have changed values (ALTER COLUMN … TYPE … USING). ``rejoined``: a partition was detached and attached again.
    ``doubted``: why rows may have been changed unseen, if nothing else shows whether they were.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    detached: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rewritten: bool = False
    recomputed: bool = False
    rejoined: bool = False
    doubted: str = ""

    def __bool__(self) -> bool:
        return bool(self.columns or self.rows or self.attached or self.detached or self.added) or self.may_differ

    @property
    def may_differ(self) -> bool:
        """Only a comparison with the source shows whether rows were changed."""
        return self.rewritten or bool(self.doubted)


NO_UNLOGGED_CHANGES = UnloggedChanges()


def unlogged_changes(
    known: TableIdentity, now: TableIdentity, copied: TableSchema, selected: TableSchema
) -> UnloggedChanges:
    """Compare the identities ``known`` of the copy and ``now`` of the catalog. ``copied``: the schema of the copy;
    ``selected``: the schema to copy now. A TRUNCATE counts as a rewrite; only the stream shows that it was one."""
    if known.form != now.form:
        now = _in_form_of(known, now)
    if known.table != now.table:
        return UnloggedChanges(rows=("the table was replaced by another one of the same name",))
    partitions = [(known.partitions[id], now.partitions[id]) for id in known.partitions.keys() & now.partitions.keys()]
    rejoined = any(before.joined != after.joined for before, after in partitions)
    rewritten = rejoined or any(before.file != after.file for before, after in partitions)
    return UnloggedChanges(
        columns=tuple(
            chain(
                _changed_columns(known, now, copied, selected), _added_columns(known, now, copied, selected, rewritten)
            )
        ),
        rows=tuple(chain(_not_carried(known, now), _relabelled(known, now))),
        attached=tuple(sorted(now.partitions.keys() - known.partitions.keys())),
        detached=tuple(known.partitions[id].name for id in sorted(known.partitions.keys() - now.partitions.keys())),
        added=_added_in_rows(now, copied, selected),
        rewritten=rewritten,
        recomputed=rewritten and any(_altered(known, now, name) for name in copied.names),
        rejoined=rejoined,
        doubted=_doubted(known, now),
    )


def _in_form_of(known: TableIdentity, now: TableIdentity) -> TableIdentity:
    """``now`` without what one of two forms lacks: the id of the table, numbers that are no positions, the details of a
    type after its name, expressions. These are as in ``known``."""
    columns = {name: _column_in_form_of(known.columns.get(name), column) for name, column in now.columns.items()}
    return replace(now, table=known.table, columns=columns, positional=known.positional or now.positional)


def _column_in_form_of(known: ColumnIdentity | None, now: ColumnIdentity) -> ColumnIdentity:
    if known is None:
        return now
    same = known.type.split(" ")[0] == now.type.split(" ")[0]
    return replace(now, type=known.type if same else now.type, expression=known.expression)


def _changed_columns(
    known: TableIdentity, now: TableIdentity, copied: TableSchema, selected: TableSchema
) -> Iterator[str]:
    names = {column.number: name for name, column in now.columns.items()}
    if now.positional and (moved := _moved(known, now, copied)):
        yield f"columns {', '.join(moved)} changed positions or names"
    for name in copied.names:
        before, after = known.columns.get(name), now.columns.get(name)
        if before is None:
            if after is not None:  # dropped before, with no row change that would have shown it
                yield f"column {name} was dropped and another one was added under its name"
            continue
        renamed = name if now.positional else names.get(before.number, name)
        if _is_streamed(known, now, name, renamed, copied, selected):
            continue
        if renamed != name:
            yield f"column {name} was renamed to {renamed}"
        elif after is not None and after.number != before.number and not now.positional:
            yield f"column {name} was dropped and another one was added under its name"
        elif after is not None and after.type != before.type:
            yield f"column {name} changed from {_native(copied, name)} to {_native(selected, name)}"
        elif after is not None:
            yield from _other_values(name, before, after)


def _is_streamed(
    known: TableIdentity, now: TableIdentity, name: str, now_name: str, copied: TableSchema, selected: TableSchema
) -> bool:
    """Whether the schemas in the stream show the column's new name or type: by its id, and by its logical type."""
    column = copied.column(name)
    after = next((one for one in selected.columns if one.name == now_name), None)
    if not column.id or after is None or after.id != column.id or (after.name, after.type) == (name, column.type):
        return False
    return now_name == name or (now_name not in known.columns and name not in now.columns)


def _moved(known: TableIdentity, now: TableIdentity, copied: TableSchema) -> list[str]:
    """Copied columns whose order among the remaining columns changed."""
    orders = [
        sorted(known.columns.keys() & now.columns.keys(), key=lambda name: (identity.columns[name].number, name))
        for identity in (known, now)
    ]
    return [before for before, after in zip(*orders, strict=True) if before != after and before in copied.names]


def _other_values(name: str, before: ColumnIdentity, after: ColumnIdentity) -> Iterator[str]:
    """A statement that shortens a type or removes labels may have changed values."""
    if after.expression and after.expression != before.expression:
        yield f"the expression of column {name} changed"
    if after.length is not None and (before.length is None or after.length < before.length):
        yield f"column {name} was shortened from {before.length or 'unlimited'} to {after.length} characters or digits"
    if after.labels and (removed := [label for label in before.labels if label not in after.labels]):
        yield f"column {name} lost the labels {', '.join(removed)}"


def _added_in_rows(now: TableIdentity, copied: TableSchema, selected: TableSchema) -> tuple[str, ...]:
    """Compares with the schema of the copy: the known identity may have been read after the column was added."""
    added = (name for name in selected.names if name not in copied.names and name in now.columns)
    return tuple(name for name in added if now.columns[name].in_rows)


def _added_columns(
    known: TableIdentity, now: TableIdentity, copied: TableSchema, selected: TableSchema, rewritten: bool
) -> Iterator[str]:
    """New columns whose values in older rows are neither in the catalog nor NULL."""
    for name in selected.names:
        column = now.columns.get(name)
        if column is None or name in known.columns or column.in_rows:
            continue
        if former := next((old for old, before in known.columns.items() if before.number == column.number), ""):
            if former not in copied.names:
                yield f"column {former}, which is not copied, was renamed to {name}"
            continue  # else a renamed column, reported already
        if column.number <= known.last_number:
            yield f"column {name} was a generated column and is an ordinary column now"
        elif not column.filled and (column.unknown_fill or rewritten):
            yield f"the values of column {name} in rows older than the column are not in the stream"


def _not_carried(known: TableIdentity, now: TableIdentity) -> Iterator[str]:
    if known.membership and known.membership != now.membership:
        yield "the stream did not carry its changes for some time"
    elif known.sent and now.sent and known.sent.carried != now.sent.carried:
        yield f"the stream carried other changes ({known.sent.carried}) than now ({now.sent.carried})"
    elif known.sent and now.sent and known.sent.altered != now.sent.altered and known.sent.others == now.sent.others:
        yield ALTERED


def _doubted(known: TableIdentity, now: TableIdentity) -> str:
    return _altered_stream(known, now) or _renamed_back(known, now) or _other_key(known, now)


def _altered_stream(known: TableIdentity, now: TableIdentity) -> str:
    """Another setting of the stream is altered, which explains the alteration. The operations may have been altered and
    set back, too."""
    if not known.sent or not now.sent or known.membership != now.membership or known.sent.carried != now.sent.carried:
        return ""
    return ALTERED if known.sent.altered != now.sent.altered and known.sent.others != now.sent.others else ""


def _renamed_back(known: TableIdentity, now: TableIdentity) -> str:
    """Changes from before the second renaming have the other name."""
    versions = known.label_versions, now.label_versions
    changed = [id for id in versions[0].keys() & versions[1].keys() if versions[0][id] != versions[1][id]]
    labels = sorted(now.labels[id] for id in changed if known.labels[id] == now.labels[id])
    return f"an enum label was renamed, and has its former name again: {', '.join(labels)}" if labels else ""


def _other_key(known: TableIdentity, now: TableIdentity) -> str:
    return OTHER_KEY if known.key and now.key and known.key != now.key else ""


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
    return column.type_text if column else "another type"
