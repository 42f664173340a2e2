"""A binlog file from the server's data folder or from ``mysqlbinlog --raw``.

There is no catalog: with ``binlog_row_metadata = FULL`` the server writes names, signs, character sets and keys into
the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pymysql.charset import charset_by_id

from airflow_cdc_provider.connectors.decoders.common.saved_messages import decompress, table_schemas, tasks_of
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog import HEADER_BYTES, BinlogEvent, parse_event
from airflow_cdc_provider.connectors.sources.mysql.decode import BinlogDecoder
from airflow_cdc_provider.connectors.sources.mysql.decoder_settings import DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.positions import BinlogPosition
from airflow_cdc_provider.connectors.sources.mysql.schemas import charset_of
from airflow_cdc_provider.connectors.sources.mysql.table_map import TableMap, parse_table_map, table_id_and_name
from airflow_cdc_provider.connectors.sources.mysql.types import column_from_field
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.schema import TableSchema

MAGIC = b"\xfebin"
SIZE, END = slice(9, 13), slice(13, 17)
FIRST_FILE = "binlog.000001"
EVERYTHING = BinlogPosition(1 << 62, 0)
LAST_COLLATION, FIRST_OF_MARIADB = 1023, 2048
MARIADB_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
"""MariaDB numbers its newer collations (``uca1400``) in blocks of 256, one block for each of these."""


def decode_file(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[StreamItem]:
    """``schemas``: the tables to decode, with their keys; by default all. Raises CommandRefused (CLI017) if the file is
    no binlog or has no column names, IntegrityBroken if an event cannot be decoded."""
    plain, file = decompress(data, name), Path(name).name
    if not plain.startswith(MAGIC):
        found = f"first bytes {plain[:4].hex()}"
        raise CommandRefused.of("CLI017", "not a binlog file", where=name, found=found, allowed=MAGIC.hex())
    events = list(_events(plain, file if file.rpartition(".")[2].isdecimal() else FIRST_FILE))
    mariadb = any(event.type == binlog.FORMAT and b"MariaDB" in event.body[:52] for event in events)
    collations = dict(_collations())
    tables = {schema.table: schema for schema in table_schemas(schemas)} or _schemas(events, mariadb, collations, name)
    decoder = BinlogDecoder(tasks_of(tables.values()), DecoderSettings({}, collations, mariadb), 1, "", EVERYTHING)
    for event in events:
        decoder.feed(event)
        yield from decoder.items
        decoder.items.clear()


def _events(data: bytes, file: str) -> Iterator[BinlogEvent]:
    """With the offsets of the stream, which has no annotations of MariaDB. Omits an incomplete last event, which a file
    has while it is written or after it was truncated."""
    at = pos = len(MAGIC)
    has_checksum = False
    while len(data) - at >= HEADER_BYTES:
        size = int.from_bytes(data[at + SIZE.start : at + SIZE.stop], "little")
        if size < HEADER_BYTES or at + size > len(data):
            return
        event, has_checksum = parse_event(data[at : at + size], 0, file, pos, has_checksum)
        at += size
        if event.type != binlog.MARIADB_ANNOTATION:
            pos = event.end
            yield event
        if event.type == binlog.MARIADB_ENCRYPTION and _is_encrypted(data[at : at + HEADER_BYTES], at):
            raise _encrypted(file)


def _is_encrypted(header: bytes, at: int) -> bool:
    """Whether the event at this offset does not end where its header says. A server sends the announcement of an
    encryption too, but no encrypted events."""
    size, end = (int.from_bytes(header[part], "little") for part in (SIZE, END))
    return len(header) == HEADER_BYTES and end not in (0, at + size)


def _encrypted(file: str) -> CommandRefused:
    return CommandRefused.of(
        "CLI017",
        "the binlog file is encrypted",
        where=file,
        found="encrypt_binlog = ON when the server wrote the file",
        allowed="a binlog file as the server sends it",
        do="`mysqlbinlog --read-from-remote-server --raw` writes the file without encryption",
    )


def _collations() -> Iterator[tuple[int, str]]:
    """Collation id → character set, for MySQL and MariaDB."""
    for number in range(LAST_COLLATION + 1):
        with contextlib.suppress(KeyError):
            yield number, charset_by_id(number).name  # type: ignore[attr-defined]
    for number in range(256 * len(MARIADB_CHARSETS)):
        yield FIRST_OF_MARIADB + number, MARIADB_CHARSETS[number // 256]


def _schemas(
    events: list[BinlogEvent], mariadb: bool, collations: Mapping[int, str], file: str
) -> dict[str, TableSchema]:
    """The schema in the first table map of each table."""
    schemas: dict[str, TableSchema] = {}
    for event in events:
        if event.type == binlog.TABLE_MAP and table_id_and_name(event.body)[1] not in schemas:
            table_map = parse_table_map(event.body, mariadb)
            schemas[table_map.table] = _schema(table_map, collations, file)
    return schemas


def _schema(table_map: TableMap, collations: Mapping[int, str], file: str) -> TableSchema:
    if not table_map.has_names:
        raise CommandRefused.of(
            "CLI017",
            f"the binlog has no column names of {table_map.table}",
            where=file,
            found="binlog_row_metadata was not FULL when the file was written",
            do="set it to FULL for later files; `mysqlbinlog -v` prints the values of this one without names",
        )
    columns = [column_from_field(field, charset_of(field, collations)) for field in table_map.fields]
    names = [column.name for column in columns if column]
    key = tuple(table_map.fields[index].name for index in table_map.key or ())
    return TableSchema(table_map.table, tuple(c.column for c in columns if c), key if set(key) <= set(names) else ())
