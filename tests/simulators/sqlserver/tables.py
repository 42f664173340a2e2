"""Tables of the simulated database: their columns, their keys, their rows, and what a statement writes to the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.table.source_names import table_name
from tests.simulators.sqlserver.dialect import quoted

Row = dict[str, Any]
DELETE, INSERT, UPDATE = "delete", "insert", "update"
SIZES = {"tinyint": (1, 3, 0), "smallint": (2, 5, 0), "int": (4, 10, 0), "bigint": (8, 19, 0), "bit": (1, 1, 0),
         "money": (8, 19, 4), "smallmoney": (4, 10, 4), "real": (4, 24, 0), "float": (8, 53, 0), "date": (3, 10, 0),
         "smalldatetime": (4, 16, 0), "datetime": (8, 23, 3), "uniqueidentifier": (16, 0, 0), "timestamp": (8, 0, 0),
         "text": (16, 0, 0), "ntext": (16, 0, 0), "image": (16, 0, 0), "xml": (-1, 0, 0), "hierarchyid": (892, 0, 0),
         "geometry": (-1, 0, 0), "geography": (-1, 0, 0), "sql_variant": (8016, 0, 0)}  # fmt: skip
TEXTS = ("char", "varchar", "text", "nchar", "nvarchar", "ntext")


@dataclass(frozen=True)
class Col:
    """``type``: as in a CREATE TABLE statement. ``default``: whether it has one."""

    name: str
    type: str
    nullable: bool = True
    default: bool = False
    computed: Callable[[Row], Any] | None = None
    collation: str = "SQL_Latin1_General_CP1_CI_AS"
    number: int = 0

    @property
    def system_type(self) -> str:
        return self.type.partition("(")[0]

    @property
    def size(self) -> tuple[int, int, int]:
        """``max_length``, ``precision`` and ``scale`` as in sys.columns."""
        name, inner = self.system_type, self.type.partition("(")[2].rstrip(")")
        if name in SIZES:
            return SIZES[name]
        if name in ("decimal", "numeric"):
            precision, _, scale = inner.partition(",")
            return 17, int(precision), int(scale or 0)
        if name in ("time", "datetime2", "datetimeoffset"):
            digits = int(inner or 7)
            return 8, 19 + digits, digits
        length = -1 if inner == "max" else int(inner or 1) * (2 if name in ("nchar", "nvarchar") else 1)
        return length, 0, 0

    @property
    def large(self) -> bool:
        return self.size[0] == -1 or self.system_type in ("text", "ntext", "image")


@dataclass(frozen=True)
class Logged:
    """A log record of a row: its LSN, the command in its transaction, and the row before and after."""

    lsn: int
    command: int
    kind: str
    before: Row | None
    after: Row | None


@dataclass
class Table:
    """``clustered``: whether its key is the clustered index. ``rows``: with every column, by a number of their own."""

    namespace: str
    name: str
    columns: list[Col]
    key: tuple[str, ...]
    clustered: bool = True
    object_id: int = 0
    created: str = ""
    last_number: int = 0
    partitions: int = 1
    rows: dict[int, Row] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        return f"{quoted(self.namespace)}.{quoted(self.name)}"

    @property
    def full_name(self) -> str:
        return table_name(self.namespace, self.name)

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Case and trailing blanks do not distinguish texts."""
        kinds = {column.name: column for column in self.columns}
        return tuple(_comparable(kinds[name], row[name]) for name in self.key)

    def complete(self, row: Row) -> Row:
        full = {column.name: row.get(column.name) for column in self.columns}
        return full | {column.name: column.computed(full) for column in self.columns if column.computed}


def _comparable(column: Col, value: Any) -> Any:
    return value.rstrip(" ").casefold() if column.system_type in TEXTS and "_CI_" in column.collation else value


def changes_of_update(
    table: Table, pairs: Sequence[tuple[Row, Row]], as_pairs: bool
) -> Iterator[tuple[str, Row | None, Row | None, bool]]:
    """What one UPDATE statement logs: kind, rows, and whether the record shares the row LSN of the one before it.

    A key of the clustered index that changes is a delete and an insert: of one row with one row LSN, of several rows
    split, sorted, and collapsed to an update where one row leaves a key that another one takes. A row of a heap, and a
    row whose key stays, is updated in place, unless the server defers the update (``as_pairs``)."""
    moved = [pair for pair in pairs if table.key_of(pair[0]) != table.key_of(pair[1])]
    if not table.clustered or not moved:
        for before, after in pairs:
            if as_pairs:
                yield DELETE, before, None, False
                yield INSERT, None, after, True
            else:
                yield UPDATE, before, after, False
        return
    if len(pairs) == 1:
        ((before, after),) = pairs
        yield DELETE, before, None, False
        yield INSERT, None, after, True
        return
    left = {table.key_of(before): before for before, _ in pairs}
    taken = {table.key_of(after): after for _, after in pairs}
    for key in sorted(left.keys() - taken.keys()):
        yield DELETE, left[key], None, False
    for key in sorted(taken):
        if key in left:
            yield UPDATE, left[key], taken[key], False
        else:
            yield INSERT, None, taken[key], False
