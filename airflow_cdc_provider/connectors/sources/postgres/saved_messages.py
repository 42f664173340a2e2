"""Decodes changes of a slot that were saved to a file, the output of

    psql -At -F ' ' -c "SELECT lsn, data FROM pg_logical_slot_peek_binary_changes('slot', NULL, NULL,
        'proto_version', '1', 'publication_names', 'publication')"

Every line is an LSN and the bytes of a message in hex. Schemas of the tables are taken from the relation messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.saved_messages import decompress, table_schemas, tasks_of
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.decode import PgoutputDecoder
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalog
from airflow_cdc_provider.connectors.sources.postgres.types import logical_type
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.schema import Column, TableSchema

NO_LIMIT = 1 << 64


def decoded(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[StreamItem]:
    """Raises CommandRefused (CLI017) if a line is malformed, IntegrityBroken if its bytes are not a message."""
    received = [
        _parse_line(line, f"{name}:{number}")
        for number, line in enumerate(decompress(data, name).splitlines(), 1)
        if line.strip()
    ]
    known = {schema.table: schema for schema in table_schemas(schemas)}
    for _, message in received:
        if message[:1] == b"R" and not schemas:
            known |= _schema(message)
    decoder = PgoutputDecoder(tasks_of(known.values()), Catalog({}, {}), 1, 0, NO_LIMIT)
    for message_with_lsn in received:
        decoder.feed([message_with_lsn])
        yield from decoder.items
        decoder.items.clear()


def _parse_line(line: bytes, where: str) -> tuple[int, bytes]:
    parts = line.split()
    try:
        return parse_lsn(parts[0].decode()), bytes.fromhex(parts[-1].decode().removeprefix("\\x"))
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise CommandRefused.of(
            "CLI017", "the line is not a message of a slot", where=where, allowed="16/B3748 \\x42…"
        ) from error


def _schema(message: bytes) -> dict[str, TableSchema]:
    try:
        relation = messages.parse_relation(message)
    except messages.MALFORMED:
        return {}  # the decoder raises the error
    columns = tuple(
        Column(attribute.name, logical_type(attribute.type_oid, attribute.typmod, {}))
        for attribute in relation.attributes
    )
    key = tuple(attribute.name for attribute in relation.attributes if attribute.identity and relation.identity != "f")
    return {relation.table: TableSchema(relation.table, columns, key)}
