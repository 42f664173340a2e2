"""A copy of a whole table, in shares of its key that any process can read, any number of times.

Not exact by itself: shares are read one beside the other while others write. It stands at a place of the binlog before
which everything was committed when the first share was read; what is told behind it is applied on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.key_ranges import ROWS_AT_ONCE, KeyRange, key_ranges, range_of
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.sources.mysql.cascades import refuse_cascades
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, ask, read_server
from airflow_cdc_provider.connectors.sources.mysql.check_tables import operand_problems
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    GTID,
    POS,
    binlog_position,
    floor_key,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.sources.mysql.wanted_forms import formed
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, unrepresentable_row
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.filters import literal
from airflow_cdc_provider.core.spec.selection import selected_schema
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

SETTLE_LIMIT_S = 60
REPEATABLE = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
SHORTER = {"float": "({0} + 0.0e0)", "time": "CAST({0} AS CHAR)", "uuid": "CAST({0} AS CHAR)"}
SHORTER |= {"inet4": "CAST({0} AS CHAR)", "inet6": "CAST({0} AS CHAR)", "year": "({0} + 0)"}
"""Types of which the server gives something else than what the binlog tells."""

OPERATORS = {Comparison.NOT_EQUAL: "<>", Comparison.IN: "IN", Comparison.NOT_IN: "NOT IN"}


@contextmanager
def open_copy(
    client: MysqlClient, task: TableTask, table: CatalogTable, epoch: int, sealed: Position, cores: int
) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window. Raises CheckFailed where foreign keys change rows (SRC104)
    and where the row filter compares with what is no value (SRC018)."""
    if problems := list(operand_problems(task)):
        raise CheckFailed(*problems)
    with client.session("copy") as connection:
        position = _stands_at(connection, client, sealed)
        refuse_cascades(connection, table)
        rows, least, most = _extent(connection, table, task.schema.key)
    schema = replace(selected_schema(task.rule, table.schema), key=task.schema.key, regime=task.schema.regime)
    shares = key_ranges(rows, least, most, cores, task.rule.where)
    yield Copy(floor_key(epoch, position), position, schema, SplitRead(shares), rows)


def _stands_at(connection: Any, client: MysqlClient, sealed: Position) -> Position:
    """A place up to which every transaction can be seen. The end of the binlog is none: a transaction is written there
    before it can be seen. MariaDB names the place of a snapshot. With MySQL the copy stands where the last window
    ended, once the transaction before that can be seen.

    Raises SourceUnavailable (CPY007) where that takes too long."""
    server = read_server(connection)
    if server.is_mariadb:
        ask(connection, REPEATABLE)
        ask(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        told = dict(ask(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
        ask(connection, "COMMIT")
        here = position_of(told["Binlog_snapshot_file"], int(told["Binlog_snapshot_position"]))
        if sealed and binlog_position(here) < binlog_position(sealed):
            raise _not_settled(client, f"what is read stands at {here[FILE]}:{here[POS]}, before our last window")
        return here
    if gtid := sealed.get(GTID, ""):
        ((late,),) = ask(connection, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (gtid, SETTLE_LIMIT_S))
        if late:
            raise _not_settled(client, f"{gtid} is not executed after {SETTLE_LIMIT_S} s")
    return sealed


def _not_settled(client: MysqlClient, found: str) -> SourceUnavailable:
    return SourceUnavailable(
        Problem(
            "CPY007",
            "a transaction stands in the binlog and cannot be seen yet",
            where=client.place,
            found=found,
            do="look for a replica that a semi-synchronous commit waits for; the next run tries again",
            data="nothing was written",
        )
    )


def _extent(connection: Any, table: CatalogTable, key: tuple[str, ...]) -> tuple[int, object, object]:
    name, first = _table(table), _quoted(key[0]) if key else "NULL"
    ((rows, least, most),) = ask(connection, f"SELECT COUNT(*), MIN({first}), MAX({first}) FROM {name}")
    return int(rows), least, most


def read_split(client: MysqlClient, table: CatalogTable, share: str, schema: TableSchema) -> Iterator[pa.Table]:
    """Rows in the table's types, as they come: one statement, so one view of the table."""
    import pyarrow as pa

    part = range_of(share)
    described = {one.name: one for one in table.columns}
    columns = [described[column.text_of or column.name] for column in schema.columns]
    query, parameters = _select(table, columns, schema, part)
    names = arrow_schema(schema)
    with client.session("split", unbuffered=True) as connection:
        ask(connection, REPEATABLE)
        cursor = connection.cursor()
        cursor.execute(query, parameters)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            cells = zip(*rows, strict=True)
            arrays = [
                pa.array(_values(schema, column, one, values), arrow_type(column.type))
                for column, one, values in zip(schema.columns, columns, cells, strict=True)
            ]
            yield pa.table(arrays, schema=names)


def _select(
    table: CatalogTable, columns: list[CatalogColumn], schema: TableSchema, part: KeyRange
) -> tuple[str, list[object]]:
    listed = ", ".join(SHORTER.get(one.data_type, "{0}").format(_quoted(one.name)) for one in columns)
    where: list[str] = []
    parameters: list[object] = []
    for edge, sign in ((part.low, ">="), (part.high, "<")):
        if edge is not None:
            where.append(f"{_quoted(schema.key[0])} {sign} %s")
            parameters.append(edge)
    for condition in part.where:
        text, values = _condition(condition, schema)
        where.append(text)
        parameters += values
    query = f"SELECT {listed} FROM {_table(table)}".replace("%", "%%")
    return query + (f" WHERE {' AND '.join(where)}" if where else ""), parameters


def _condition(condition: Condition, schema: TableSchema) -> tuple[str, list[object]]:
    """Text is compared byte by byte, as everywhere else, and not as its collation has it."""
    kind = schema.column(condition.column).type.kind
    textual = kind in (Kind.TEXT, Kind.JSON, Kind.UUID)
    name = _quoted(condition.column).replace("%", "%%")
    name = f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)" if textual else name
    given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if condition.op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        is_null = f"{name} <=> NULL"  # to the server a zero date that is NOT NULL `IS NULL`
        return is_null if condition.op is Comparison.IS_NULL else f"NOT ({is_null})", []
    values = [_given(literal(kind, value)) for value in given if value is not None]
    marks = ", ".join(["%s"] * len(values))
    sign = OPERATORS.get(condition.op, condition.op.value)
    listed = condition.op in (Comparison.IN, Comparison.NOT_IN)
    return f"{name} {sign} {f'({marks})' if listed else marks}", values


def _given(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value.encode() if isinstance(value, str) else value


def _values(schema: TableSchema, column: Column, described: CatalogColumn, cells: Sequence[Any]) -> list[Any]:
    """Raises BadRecordFound (CPY009) for what no target has."""
    read = formed(schema, column, described, lambda cell: column_value(described.column.type, _value(described, cell)))
    try:
        return [None if cell is None else read(cell) for cell in cells]
    except Unrepresentable as error:
        raise BadRecordFound(unrepresentable_row(schema, [column.name], str(error))) from error


def _value(column: CatalogColumn, cell: Any) -> Any:
    """Bits come as bytes."""
    if cell is None:
        return None
    return cell != b"\0" if column.column.type.kind is Kind.BOOLEAN else cell


def _table(table: CatalogTable) -> str:
    return f"{_quoted(table.database)}.{_quoted(table.name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
