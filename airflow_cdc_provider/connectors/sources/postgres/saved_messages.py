"""Changes of a slot that somebody saved: the lines of

    psql -At -F ' ' -c "SELECT lsn, data FROM pg_logical_slot_peek_binary_changes('slot', NULL, NULL,
        'proto_version', '1', 'publication_names', 'publication')"

Every line is a place and the bytes of a message in hex. The relation messages among them tell the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.saved_messages import decompress, table_schemas
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.decode import PgoutputDecoder
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalogue
from airflow_cdc_provider.connectors.sources.postgres.types import logical_type
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState

EVERYTHING = 1 << 64


def decoded(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[StreamItem]:
    """Raises CommandRefused where a line is none, IntegrityBroken where its bytes are no message."""
    told = [
        _line(line, f"{name}:{number}")
        for number, line in enumerate(decompress(data, name).splitlines(), 1)
        if line.strip()
    ]
    known = {schema.table: schema for schema in table_schemas(schemas)}
    for _, message in told:
        if message[:1] == b"R" and not schemas:
            known |= _table(message)
    tasks = [TableTask(table, table, one, TableRule(table), "", TableState.REPLICATING) for table, one in known.items()]
    decoder = PgoutputDecoder(tasks, Catalogue({}, {}), 1, 0, EVERYTHING)
    for one in told:
        decoder.feed([one])
        yield from decoder.items
        decoder.items.clear()


def _line(line: bytes, where: str) -> tuple[int, bytes]:
    parts = line.split()
    try:
        return parse_lsn(parts[0].decode()), bytes.fromhex(parts[-1].decode().removeprefix("\\x"))
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise CommandRefused(
            Problem("CLI017", "a line is no message of a slot", where=where, allowed="16/B3748 \\x42…")
        ) from error


def _table(message: bytes) -> dict[str, TableSchema]:
    try:
        relation = messages.parse_relation(message)
    except messages.MALFORMED:
        return {}  # the decoder will say so
    columns = tuple(Column(one.name, logical_type(one.type_oid, one.typmod, {})) for one in relation.attributes)
    key = tuple(one.name for one in relation.attributes if one.identity and relation.identity != "f")
    return {relation.table: TableSchema(relation.table, columns, key)}
