"""A full copy of a table, in splits by key range. Any process can read a split, any number of times.

The copy is not exact: splits are read concurrently, while other sessions write. Its anchor is a position of the binlog
before which every transaction was visible when the first split was read. Later changes are applied on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.copied.altered_tables import (
    altered_meanwhile,
    of_type,
    require_columns,
)
from airflow_cdc_provider.connectors.key_ranges import ROWS_AT_ONCE, KeyRange, key_ranges
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.sources.mysql.cascades import refuse_cascades
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    CatalogTable,
    fetch_all,
    quoted,
    read_binlog_end,
    read_server,
)
from airflow_cdc_provider.connectors.sources.mysql.charsets import CORRECT_TEXT, NoText, decoder
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.conditions import row_filter
from airflow_cdc_provider.connectors.sources.mysql.identities import read_identities
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    POS,
    binlog_position,
    floor_key,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.refused import filter_problems
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.sources.mysql.value_conversion import convert_for_copy
from airflow_cdc_provider.connectors.sources.mysql.visibility import (
    not_visible,
    require_commit_order,
    wait_for_logged,
)
from airflow_cdc_provider.connectors.unrepresentable import UNCHANGED, Unrepresentable, unrepresentable_row
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import BadRecordFound, Problem, raise_problems
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.source_names import parts_of

if TYPE_CHECKING:
    import pyarrow as pa

REPEATABLE = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
EXPRESSIONS = {"float": "({0} + 0.0e0)", "time": "CAST({0} AS CHAR)", "uuid": "CAST({0} AS CHAR)"}
EXPRESSIONS |= {"inet4": "CAST({0} AS CHAR)", "inet6": "CAST({0} AS CHAR)", "year": "({0} + 0)"}
EXPRESSIONS |= {"vector": "CAST({0} AS BINARY)"}
"""Expressions for types whose plain values differ between a query and the binlog."""

IN_ITS_CHARSET = "CONVERT({0} USING binary)"
"""A text as the binlog has it. The server would convert a code without a character to a question mark. A CAST of a text
above ``max_allowed_packet`` would be NULL."""


@contextmanager
def open_copy(
    client: MysqlClient,
    task: TableTask,
    describe: Callable[[], CatalogTable],
    epoch: int,
    sealed: Position,
    cores: int,
) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window. ``describe`` reads the catalog. Raises CheckFailed if a foreign
    key changes rows of the table (SRC104) or an operand of the row filter is not a value of its column (SRC018),
    SourceUnavailable (CPY012) if the table is altered meanwhile: the stream has only what comes after the anchor."""
    table = describe()
    with client.session("copy") as connection:
        before = _identity(connection, task)
        position = anchor_of(connection, client, sealed)
        if describe() != table:
            raise altered_meanwhile(task.table, "other columns than before the position of the copy was read")
        copy = view_of(connection, position, task, table, epoch, cores)
        same = _identity(connection, task) == before
    yield replace(copy, identity=before if same else None)


def _identity(connection: Any, task: TableTask) -> TableIdentity | None:
    name = task.name_in_source
    return (read_identities(connection, [parts_of(name)[0]]) or {}).get(name)


def view_of(connection: Any, position: Position, task: TableTask, table: CatalogTable, epoch: int, cores: int) -> Copy:
    raise_problems(filter_problems(task))
    refuse_cascades(connection, table)
    schema = replace(selected_schema(task.rule, table.schema), key=task.schema.key, regime=task.schema.regime)
    require_columns(schema, table.schema.names)
    rows, least, most = _count_rows(connection, table, schema.key)
    splits = key_ranges(rows, least, most, cores, task.rule.where, table.schema.table)
    return Copy(floor_key(epoch, position), position, schema, SplitRead(splits, lasting=True), rows)


def anchor_of(connection: Any, client: MysqlClient, sealed: Position) -> Position:
    """A position before which every transaction is visible, as late as possible: a statement before it concerns no row
    of the copy. The end of the binlog is not such a position: a transaction is logged before it becomes visible.
    MariaDB reports the position of a snapshot. MySQL does not, so the anchor is an end of the binlog, once all that was
    logged before it is visible.

    Raises SourceUnavailable (CPY007) if it is not visible in time, or if the binlog ends before the last window
    (``sealed``), CheckFailed (SRC095) if that cannot be known."""
    server = read_server(connection)
    if server.is_mariadb:
        anchor = begin_snapshot(connection, client, sealed)
        fetch_all(connection, "COMMIT")
        return anchor
    require_commit_order(connection, client)
    end = read_binlog_end(connection, client)
    anchor = position_of(end.file, end.pos)
    _require_not_before(client, anchor, sealed, "the binlog ends")
    wait_for_logged(connection, client)
    return anchor


def begin_snapshot(connection: Any, client: MysqlClient, sealed: Position) -> Position:
    """Begins a transaction whose queries see the state at the returned position. MariaDB only."""
    fetch_all(connection, REPEATABLE)
    fetch_all(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    status = dict(fetch_all(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    anchor = position_of(status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"]))
    _require_not_before(client, anchor, sealed, "the snapshot is")
    return anchor


def _require_not_before(client: MysqlClient, anchor: Position, sealed: Position, what: str) -> None:
    if sealed and binlog_position(anchor) < binlog_position(sealed):
        raise not_visible(client, f"{what} at {anchor[FILE]}:{anchor[POS]}, before our last window")


def _count_rows(connection: Any, table: CatalogTable, key: tuple[str, ...]) -> tuple[int, object, object]:
    """The number of rows, and the smallest and largest value of the leading key column."""
    name, first = table_sql(table), quoted(key[0]) if key else "NULL"
    ((rows, least, most),) = fetch_all(connection, f"SELECT COUNT(*), MIN({first}), MAX({first}) FROM {name}")
    return int(rows), least, most


def read_split(
    client: MysqlClient, table: CatalogTable, key_range: KeyRange, schema: TableSchema
) -> Iterator[pa.Table]:
    """The rows in the table's types. One statement reads them, so they are consistent. Raises SourceUnavailable
    (CPY012) if the table was altered since the copy was opened, so that it does not have them."""
    require_columns(schema, table.schema.names, (condition.column for condition in key_range.where))
    query, parameters = _select(table, schema, key_range)
    with client.session("split", unbuffered=True) as connection:
        fetch_all(connection, REPEATABLE)
        yield from read_rows(connection, table, schema, query, parameters)


def read_rows(
    connection: Any, table: CatalogTable, schema: TableSchema, query: str, parameters: Sequence[object]
) -> Iterator[pa.Table]:
    """``query``: a SELECT of ``column_list``, with marks for the parameters."""
    import pyarrow as pa

    columns = _columns(table, schema)
    cursor = connection.cursor()
    cursor.execute(query, parameters)
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        cells = zip(*rows, strict=True)
        arrays = []
        for column, source, values in zip(schema.columns, columns, cells, strict=True):
            with of_type(schema.table, source.name, column.type, source.column.type):
                arrays.append(pa.array(_values(schema, column, source, values), arrow_type(column.type)))
        yield pa.table(arrays, schema=arrow_schema(schema))


def column_list(table: CatalogTable, schema: TableSchema) -> str:
    columns = _columns(table, schema)
    return ", ".join(_expression(column).format(quoted(column.name)) for column in columns)


def _expression(column: CatalogColumn) -> str:
    return IN_ITS_CHARSET if column.charset else EXPRESSIONS.get(column.data_type, "{0}")


def _columns(table: CatalogTable, schema: TableSchema) -> list[CatalogColumn]:
    described = {column.name: column for column in table.columns}
    return [described[column.text_of or column.name] for column in schema.columns]


def _select(table: CatalogTable, schema: TableSchema, key_range: KeyRange) -> tuple[str, list[object]]:
    where: list[str] = []
    parameters: list[object] = []
    for bound, operator in ((key_range.low, ">="), (key_range.high, "<")):
        if bound is not None:
            where.append(f"{quoted(schema.key[0])} {operator} %s")
            parameters.append(bound)
    filters, values = row_filter(key_range.where, schema, table)
    where, parameters = [*where, *filters], [*parameters, *values]
    query = f"SELECT {column_list(table, schema)} FROM {table_sql(table)}".replace("%", "%%")
    return query + (f" WHERE {' AND '.join(where)}" if where else ""), parameters


def _values(schema: TableSchema, column: Column, described: CatalogColumn, cells: Sequence[Any]) -> list[Any]:
    """Raises BadRecordFound for a value that no target can represent (CPY009), and for a text with a code that has no
    character (CPY014)."""
    try:
        read = convert_for_copy(schema, column, described, _reader(described))
        return [None if cell is None else read(cell) for cell in cells]
    except Unrepresentable as error:
        raise BadRecordFound(unrepresentable_row(schema, [column.name], str(error))) from error
    except NoText as error:
        raise BadRecordFound(_no_text(schema, described, str(error))) from error


def _reader(column: CatalogColumn) -> Callable[[Any], Any]:
    """From a value of the driver, which returns BIT values as bytes."""
    kind = column.column.type
    if column.charset:
        return decoder(column.charset)
    if kind.kind is Kind.BOOLEAN:
        return lambda cell: cell != b"\0"
    return lambda cell: column_value(kind, cell)


def _no_text(schema: TableSchema, column: CatalogColumn, found: str) -> Problem:
    return Problem(
        "CPY014",
        f"{schema.table} has a text that cannot be converted to Unicode",
        where=schema.table,
        found=f"{column.name} ({column.column_type}): {found}",
        allowed="codes with a character",
        do=CORRECT_TEXT,
        data=UNCHANGED,
        columns=(column.name,),
    )


def table_sql(table: CatalogTable) -> str:
    return f"{quoted(table.database)}.{quoted(table.name)}"
