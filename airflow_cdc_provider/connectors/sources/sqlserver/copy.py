"""A full copy of a table, in splits by key range. Any process can read a split, any number of times.

The copy is not exact. Each split is one statement under snapshot isolation; later changes are applied on top. The
anchor is the end of the last window: the capture job has read its commit from the log, and so have all earlier ones. A
commit is in the log a moment before queries show it, so the copy begins some seconds later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.copied.altered_tables import of_type
from airflow_cdc_provider.connectors.key_ranges import KeyRange, key_ranges, range_of
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import (
    CatalogTable,
    read_database,
    read_described,
    read_tables,
)
from airflow_cdc_provider.connectors.sources.sqlserver.check import database_problems
from airflow_cdc_provider.connectors.sources.sqlserver.check_tables import missing_table, table_problems
from airflow_cdc_provider.connectors.sources.sqlserver.client import Client, Session
from airflow_cdc_provider.connectors.sources.sqlserver.identities import INTEGERS, identity_of
from airflow_cdc_provider.connectors.sources.sqlserver.options import SqlServerOptions
from airflow_cdc_provider.connectors.sources.sqlserver.positions import (
    AT,
    key_after,
    key_before,
    lsn_of,
    position_lsn,
    position_of,
)
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn
from airflow_cdc_provider.connectors.sources.sqlserver.values import cell_reader, source_reader
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, unrepresentable_row
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed, SourceUnavailable, raise_problems
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.filters import matches
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import Column, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

SETTLE_S = 10
"""Between the anchor and the first read. A commit that the capture job has read is shown to queries within
milliseconds."""

ROWS_AT_ONCE = 10_000


@contextmanager
def open_copy(
    client: Client,
    options: SqlServerOptions,
    replicator: str,
    task: TableTask,
    epoch: int,
    sealed: Position,
    cores: int,
    sleep: Callable[[float], None],
) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window. Raises CheckFailed if the table cannot be copied exactly,
    SourceUnavailable if its capture instance has no start yet."""
    with client.session("copy") as session:
        database = read_database(session)
        described = read_described(session, database, options.schemas)
        table = described.tables.get(task.table)
        if table is None:
            raise CheckFailed(missing_table(task.table, client.address))
        problems = table_problems(task, table, described, client.address, replicator)
        raise_problems([*database_problems(database, client.address), *problems])
        newest = described.instances_of(table)[-1]
        start = newest.start
        if start is None:
            raise _not_started(table, newest.name)
        _settle(session, sealed, sleep)
        rows, least, most = _size(session, table, task.schema.key)
        last = next(session.rows(queries.LAST_COMMIT), None)
    schema = replace(selected_schema(task.rule, table.schema), key=task.schema.key, regime=task.schema.regime)
    floor = max(key_after(epoch, position_lsn(sealed)), key_before(epoch, start))
    splits = key_ranges(rows, least, most, cores, task.rule.where)
    position = position_of(lsn_of(last[0]), last[1]) if last else sealed
    yield Copy(floor, position, schema, SplitRead(splits, lasting=True), rows, identity=identity_of(table))


def read_split(client: Client, options: SqlServerOptions, split: str, schema: TableSchema) -> Iterator[pa.Table]:
    """The rows in the table's types. One statement reads them, so they are consistent."""
    key_range = range_of(split)
    with client.session("split", snapshot=True) as session:
        table = read_tables(session, options.schemas).get(schema.table)
        if table is None:
            raise CheckFailed(missing_table(schema.table, client.address))
        columns = table.selected(schema)
        query = queries.rows(table.sql, columns, schema.key[0], key_range.low, key_range.high)
        rows: list[tuple[Any, ...]] = []
        passes = _filter(key_range, columns, schema)
        for row in session.rows(query):
            if passes(row):
                rows.append(row)
            if len(rows) == ROWS_AT_ONCE:
                yield _arrow(schema, columns, rows)
                rows = []
        if rows:
            yield _arrow(schema, columns, rows)


def _settle(session: Session, sealed: Position, sleep: Callable[[float], None]) -> None:
    at = sealed.get(AT, "")
    ((age,),) = session.rows(queries.age(at)) if at else ((0,),)
    if int(age) < SETTLE_S:
        sleep(SETTLE_S - max(0, int(age)))


def _size(session: Session, table: CatalogTable, key: tuple[str, ...]) -> tuple[int, object, object]:
    """The server's count of rows, and the smallest and largest value of the leading key column."""
    ((rows,),) = session.rows(queries.ROW_COUNT.format(id=table.object_id))
    leading = table.find(key[0])
    if leading is None or leading.type not in INTEGERS:
        return int(rows), None, None
    ((least, most),) = session.rows(queries.extremes(table.sql, key[0]))
    return int(rows), least, most


def _filter(key_range: KeyRange, columns: list[SqlColumn], schema: TableSchema) -> Callable[[tuple[Any, ...]], bool]:
    """The row filter, with the values that the stream compares."""
    if not key_range.where:
        return lambda _row: True
    indexes = {column.name: at for at, column in enumerate(columns)}
    filtered = [(one.column, indexes[one.column], _operand(schema, columns, one.column)) for one in key_range.where]

    def passes(row: tuple[Any, ...]) -> bool:
        return matches(
            key_range.where,
            {name: None if row[at] is None else operand(row[at]) for name, at, operand in filtered},
        )

    return passes


def _operand(schema: TableSchema, columns: list[SqlColumn], name: str) -> Callable[[Any], Any]:
    source, column = next(one for one in columns if one.name == name), schema.column(name)
    return source_reader(source) if column.type == source.column.type else cell_reader(schema, column, source)


def _arrow(schema: TableSchema, columns: list[SqlColumn], rows: list[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    indexes = {column.name: at for at, column in enumerate(columns)}
    cells = list(zip(*rows, strict=True))
    arrays = []
    for column in schema.columns:
        at = indexes[column.text_of or column.name]
        with of_type(schema.table, columns[at].name, column.type, columns[at].column.type):
            arrays.append(pa.array(_values(schema, column, columns[at], cells[at]), arrow_type(column.type)))
    return pa.table(arrays, schema=arrow_schema(schema))


def _values(schema: TableSchema, column: Column, source: SqlColumn, cells: tuple[Any, ...]) -> list[Any]:
    """Raises BadRecordFound (CPY009) for a value that no target can represent."""
    read = cell_reader(schema, column, source)
    try:
        return [None if cell is None else read(cell) for cell in cells]
    except Unrepresentable as error:
        raise BadRecordFound(unrepresentable_row(schema, [column.name], str(error))) from error


def _not_started(table: CatalogTable, instance: str) -> SourceUnavailable:
    return SourceUnavailable.of(
        "CPY011",
        f"capture instance {instance} has not begun",
        where=table.schema.table,
        found="cdc.change_tables has no start_lsn for it",
        do="wait: the next run tries again; SQL Server Agent must run",
        data="nothing was written",
    )
