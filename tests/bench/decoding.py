"""Decoding of messages on one core, against Python's ``json.loads`` of the same messages in the same run."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from airflow_cdc_provider.connectors.decoders.common.message import (
    CopiedTable,
    Decoder,
    DecoderSettings,
    DecodesMany,
    Message,
)
from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.connectors.sources.salesforce.columns import cast_columns
from airflow_cdc_provider.connectors.sources.salesforce.csv_result import read_page
from airflow_cdc_provider.connectors.transports.messages.decoding import BATCH_MESSAGES, MessageReader
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.bench.figures import Figure, alternating
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.datastream_encoder import DatastreamEncoder, Stream
from tests.connectors.formats.debezium_encoder import FIELDS, ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.simulator import Simulator
from tests.connectors.formats.ydb_encoder import TABLE, Feed, YdbEncoder
from tests.connectors.registry.schema_files import NoRegistry, registered_avro

TRANSACTIONS, ROUNDS, CORES = 1500, 5, 2
JSON_PER_S = 100_000
AVRO_PER_MINUTE = 1_000_000
FIRST_MS = 1_700_000_000_000
CSV_PER_S, CSV_ROWS = 100_000, 50_000
MORE_FIELDS = [
    {"type": "int64", "optional": True, "field": "total"},
    {"type": "double", "optional": True, "field": "ratio"},
    {"type": "boolean", "optional": True, "field": "open"},
    {"type": "string", "optional": True, "field": "code"},
    {"type": "int32", "optional": True, "field": "day", "name": "io.debezium.time.Date", "version": 1},
]
T = TypeVar("T")


def measure() -> list[Figure]:
    history = Simulator(Random(1), moves=True, late_check=False).history(TRANSACTIONS)
    still = Simulator(Random(1), moves=False, late_check=False).history(TRANSACTIONS)
    bare, whole = ConnectorSetup("postgresql", False, True, False), ConnectorSetup("mysql", True, True, False)
    feed, files = Feed("json", "NEW_AND_OLD_IMAGES"), Stream("mysql", True)
    return [
        _figure("debezium", "without schema", bare.table, list(DebeziumEncoder(bare, Random(1)).messages(history))),
        _figure("debezium", "with schema", whole.table, list(DebeziumEncoder(whole, Random(1)).messages(history))),
        _registered_figure(),
        _figure("ydb", "JSON", TABLE, list(YdbEncoder(feed, Random(1)).messages(still))),
        _figure("datastream", "Avro", files.table, list(DatastreamEncoder(files, Random(1)).messages(history))),
        _csv_figure(),
    ]


def _figure(kind: str, form: str, schema: TableSchema, messages: Sequence[Message]) -> Figure:
    setting = DecoderSettings(1, {schema.table: CopiedTable(TableRule(schema.table), schema)})
    count = sum(len(records(decoder(kind, setting).decode(one))) for one in messages)
    read: Callable[[], float] = partial(_seconds, lambda one: json.loads(one.value or b"null"), messages)
    avro = form == "Avro"
    ours, bare = alternating(
        ROUNDS, lambda: _decoded(decoder(kind, setting), messages), (lambda: 0.0) if avro else read
    )
    per_s = CORES * count / ours
    target = AVRO_PER_MINUTE / 60 if avro else JSON_PER_S
    return Figure(
        f"decode {kind} {form}, {CORES} cores",
        ours / bare if bare else per_s / target,
        "times json.loads" if bare else "times the target",
        f"≥ {target:,.0f}/s",
        per_s >= target,
        f"{per_s:,.0f} records/s on {CORES} cores, {ours / count * 1e6:.1f} µs of one core each",
    )


def _registered_figure() -> Figure:
    """Envelopes of ten columns in Avro, with the schemas in staging, at the times that a topic gives them."""
    setup = ConnectorSetup("postgresql", schemas=False, transactions=True, headers=False)
    history = Simulator(Random(1), moves=True, late_check=False).history(TRANSACTIONS)
    plain = list(_widened(DebeziumEncoder(setup, Random(1)).messages(history)))
    files, untimed = registered_avro(with_schemas(plain, fields=[*FIELDS, *MORE_FIELDS]))
    messages = [message._replace(at_ms=FIRST_MS + number) for number, message in enumerate(untimed)]
    count = sum(message.value is not None for message in messages)
    settings = DecoderSettings(1, None, {"topic_prefix": "p"})

    def decoded() -> float:
        converter = MessageConverter(RegisteredSchemas(NoRegistry(), files))
        reader = MessageReader(decoder("debezium", settings), {setup.table.table}, {}, 1, converter)
        return _seconds(lambda some: list(reader.items(some)), [messages])

    read = partial(_seconds, lambda one: json.loads(one.value or b"null"), plain)
    took, bare = alternating(ROUNDS, decoded, read)
    per_s = CORES * count / took
    return Figure(
        f"decode debezium Avro with registered schemas, {len(FIELDS) + len(MORE_FIELDS)} columns, {CORES} cores",
        took / bare,
        "times json.loads",
        f"≥ {JSON_PER_S:,}/s",
        per_s >= JSON_PER_S,
        f"{per_s:,.0f} records/s on {CORES} cores, {took / count * 1e6:.1f} µs of one core each",
    )


def _widened(messages: Iterable[Message]) -> Iterator[Message]:
    """With values of ``MORE_FIELDS``."""
    for message in messages:
        value = json.loads(message.value or b"null")
        for part in ("before", "after"):
            if value and value[part]:
                number = value[part]["id"]
                value[part] |= {"total": number * 7, "ratio": number / 8, "open": number % 2 == 0}
                value[part] |= {"code": f"code {number % 90}", "day": 19_000 + number % 900}
        yield message._replace(value=json.dumps(value).encode() if value else None)


def _csv_figure() -> Figure:
    """A page of a Bulk result: four columns each of texts, amounts, timestamps, dates and booleans."""
    fields = {
        Kind.TEXT: lambda n: f'Street "{n}",\nTown' if n % 9 == 0 else f"Name of {n}",
        Kind.DECIMAL: lambda n: f"{n}.{n % 100:02d}",
        Kind.TIMESTAMPTZ: lambda n: f"2026-01-{1 + n % 28:02d}T12:{n % 60:02d}:00.000+0000",
        Kind.DATE: lambda n: "" if n % 3 else f"2026-01-{1 + n % 28:02d}",
        Kind.BOOLEAN: lambda n: "true" if n % 2 else "false",
    }
    kinds = {kind: LogicalType(kind, 18, 2) if kind is Kind.DECIMAL else LogicalType(kind) for kind in fields}
    columns = tuple(Column(f"{kind}_{n}", kinds[kind]) for n in range(4) for kind in fields)
    schema = TableSchema("Account", columns)
    page = io.StringIO()
    lines = csv.writer(page, quoting=csv.QUOTE_ALL, lineterminator="\n")
    lines.writerow(schema.names)
    lines.writerows([fields[column.type.kind](n) for column in columns] for n in range(CSV_ROWS))
    body = page.getvalue().encode()
    (took,) = alternating(ROUNDS, lambda: _seconds(lambda one: _typed(one, schema), [body]))
    per_s = CORES * CSV_ROWS / took
    return Figure(
        f"decode Bulk CSV, {len(columns)} columns, {CORES} cores",
        per_s / CSV_PER_S,
        "times the target",
        f"≥ {CSV_PER_S:,}/s",
        per_s >= CSV_PER_S,
        f"{per_s:,.0f} rows/s on {CORES} cores",
    )


def _typed(body: bytes, schema: TableSchema) -> None:
    rows = cast_columns(read_page(body, schema.names, CSV_ROWS), schema)
    assert rows.num_rows == CSV_ROWS


def _decoded(made: Decoder, messages: Sequence[Message]) -> float:
    """As a transport decodes them."""
    if not isinstance(made, DecodesMany):
        return _seconds(made.decode, messages)
    return _seconds(
        lambda some: list(made.decode_many(some)),
        [messages[n : n + BATCH_MESSAGES] for n in range(0, len(messages), BATCH_MESSAGES)],
    )


def _seconds(of_one: Callable[[T], object], some: Sequence[T]) -> float:
    """CPU seconds: other work of the machine does not count."""
    began = time.process_time()
    for one in some:
        of_one(one)
    return time.process_time() - began
