"""A file of the binlog, as it stands in the server's data folder or as ``mysqlbinlog --raw`` fetched it.

Only what the file itself tells is known: a server with ``binlog_row_metadata = FULL`` writes names, signs, character
sets and keys into it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pymysql.charset import charset_by_id

from airflow_cdc_provider.connectors.decoders.common.saved_messages import decompress, table_schemas
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog import HEADER_BYTES, BinlogEvent, event_of
from airflow_cdc_provider.connectors.sources.mysql.decode import BinlogDecoder, DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.positions import BinlogPosition
from airflow_cdc_provider.connectors.sources.mysql.schemas import charset_of
from airflow_cdc_provider.connectors.sources.mysql.table_map import TableMap, head_of, parse_table_map
from airflow_cdc_provider.connectors.sources.mysql.types import derived
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState

MAGIC = b"\xfebin"
SIZE = slice(9, 13)
FIRST_FILE = "binlog.000001"
EVERYTHING = BinlogPosition(1 << 62, 0)
LAST_COLLATION, FIRST_OF_MARIADB = 1023, 2048
MARIADB_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
"""MariaDB numbers its newer collations (``uca1400``) in blocks of 256, one for each of these."""


def decoded(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[StreamItem]:
    """``schemas`` say which tables are shown, and their keys. Raises CommandRefused where it is no file of a binlog, or
    tells no names of columns; IntegrityBroken where an event cannot be read."""
    plain, file = decompress(data, name), Path(name).name
    if not plain.startswith(MAGIC):
        found = f"{plain[:4].hex()} at its beginning"
        raise CommandRefused(Problem("CLI017", "no file of a binlog", where=name, found=found, allowed=MAGIC.hex()))
    told = list(_events(plain, file if file.rpartition(".")[2].isdecimal() else FIRST_FILE))
    mariadb = any(one.type == binlog.FORMAT and b"MariaDB" in one.body[:52] for one in told)
    collations = dict(_collations())
    known = {schema.table: schema for schema in table_schemas(schemas)} or _tables(told, mariadb, collations, name)
    tasks = [TableTask(table, table, one, TableRule(table), "", TableState.REPLICATING) for table, one in known.items()]
    decoder = BinlogDecoder(tasks, DecoderSettings({}, collations, mariadb), 1, "", EVERYTHING)
    for event in told:
        decoder.feed(event)
        yield from decoder.items
        decoder.items.clear()


def _events(data: bytes, file: str) -> Iterator[BinlogEvent]:
    """A file that is still written, or was cut off, ends in the middle of an event: that is left out."""
    at, checked = len(MAGIC), False
    while len(data) - at >= HEADER_BYTES:
        size = int.from_bytes(data[at + SIZE.start : at + SIZE.stop], "little")
        if size < HEADER_BYTES or at + size > len(data):
            return
        event, checked = event_of(data[at : at + size], 0, file, at, checked)
        yield event
        at += size


def _collations() -> Iterator[tuple[int, str]]:
    """Number of a collation → its character set, on every server."""
    for number in range(LAST_COLLATION + 1):
        with contextlib.suppress(KeyError):
            yield number, charset_by_id(number).name  # type: ignore[attr-defined]
    for number in range(256 * len(MARIADB_CHARSETS)):
        yield FIRST_OF_MARIADB + number, MARIADB_CHARSETS[number // 256]


def _tables(told: list[BinlogEvent], mariadb: bool, collations: Mapping[int, str], name: str) -> dict[str, TableSchema]:
    """By the first word about each."""
    found: dict[str, TableSchema] = {}
    for event in told:
        if event.type == binlog.TABLE_MAP and head_of(event.body)[1] not in found:
            one = parse_table_map(event.body, mariadb)
            found[one.table] = _schema(one, collations, name)
    return found


def _schema(one: TableMap, collations: Mapping[int, str], name: str) -> TableSchema:
    if not one.is_named:
        raise CommandRefused(
            Problem(
                "CLI017",
                f"the binlog tells no names of the columns of {one.table}",
                where=name,
                found="binlog_row_metadata was not FULL when it was written",
                do="set it to FULL for what is written from now on; `mysqlbinlog -v` shows the values without names",
            )
        )
    columns = [derived(field, charset_of(field, collations)) for field in one.fields]
    names = [column.name for column in columns if column]
    key = tuple(one.fields[place].name for place in one.key or ())
    return TableSchema(one.table, tuple(c.column for c in columns if c), key if set(key) <= set(names) else ())
