"""A simulated source, encoded in every format, decoded and folded: the copy equals the source.

``CDC_HISTORIES``: the number of histories of each. ``CDC_SEED`` repeats them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats import mongo_encoder
from tests.connectors.formats.datastream_encoder import DatastreamEncoder, Stream
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.folded import FETCHED, in_order, newest
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.simulator import COLUMNS, Change, History, Row, Simulator
from tests.connectors.formats.ydb_encoder import TABLE as YDB_TABLE
from tests.connectors.formats.ydb_encoder import Feed, YdbEncoder
from tests.model import seeds

HISTORIES = seeds.histories(25)
TRANSACTIONS = 8


def histories(moves: bool, late_check: bool = False) -> Iterator[tuple[str, Random, History]]:
    """Each with the text that repeats it and the random numbers that it was made of."""
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=moves, late_check=late_check).history(TRANSACTIONS)
        yield f"CDC_SEED={seed}, history {number}", random, history


def logged_row(row: Row, zone: str = "") -> dict[str, Any]:
    """A row as in the change log."""
    key, name, amount, at, wide = row
    moment = None if at is None else at.isoformat() + zone
    return {"id": key, "name": name, "amount": None if amount is None else str(amount), "at": moment, "wide": wide}


def setting(schema: TableSchema, **options: Any) -> DecoderSettings:
    return DecoderSettings(1, {schema.table: CopiedTable(TableRule(schema.table), schema)}, options)


def decoded(kind: str, setting: DecoderSettings, messages: list[Message]) -> list[ChangeRecord]:
    made = decoder(kind, setting)
    found = [record for message in messages for record in records(made.decode(message))]
    bad = [record.after for record in found if record.op == Operation.UNREADABLE]
    assert bad == []
    return found


def halves(changes: list[Change]) -> list[tuple[str, int]]:
    """The keys that departed and arrived, in the order of the changes."""
    found = []
    for change in changes:
        if change.old and (change.new is None or change.moved):
            found.append(("departed", change.old[0]))
        if change.new:
            found.append(("arrived", change.new[0]))
    return found


def order_of(found: list[ChangeRecord]) -> list[tuple[str, int]]:
    streamed = sorted((one for one in found if one.snapshot == "none"), key=lambda one: one.order_key)
    return [
        ("departed", json.loads(one.key_before or "")[0])
        if one.op == Operation.DELETE
        else ("arrived", json.loads(one.key or "")[0])
        for one in streamed
    ]


def end(history: History, zone: str = "") -> dict[str, dict[str, Any]]:
    return {f"[{key}]": logged_row(row, zone) for key, row in history.end.items()}


SETUPS = [
    ConnectorSetup(connector, schemas, transactions, headers)
    for connector in ("mysql", "mariadb", "postgresql", "sqlserver", "oracle")
    for schemas, transactions, headers in ((True, True, True), (False, True, False), (False, False, False))
]


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_debezium_decoded_and_folded_equals_the_source(setup: ConnectorSetup) -> None:
    """Changes of MySQL and MariaDB that have no number in their transaction are in order for each key only."""
    for repetition, random, history in histories(moves=True, late_check=setup.connector == "oracle"):
        messages = list(DebeziumEncoder(setup, random).messages(history))
        random.shuffle(messages)
        decoder_settings = setting(setup.table, full_before=setup.connector == "oracle", topic_prefix="p")
        found = decoded("debezium", decoder_settings, messages)
        expected, actual = halves(history.changes), order_of(found)
        if setup.connector in ("mysql", "mariadb") and not setup.transactions:
            expected, actual = sorted(expected, key=itemgetter(1)), sorted(actual, key=itemgetter(1))
        assert actual == expected, repetition
        assert in_order([*found, *found], COLUMNS) == end(history), repetition


def test_unwrapped_rows_decoded_and_folded_equal_the_source() -> None:
    """They have no position but their offset, so they are read in the order sent; a moved row is another row."""
    setup = ConnectorSetup("mysql", False, False, False, unwrapped=True)
    for repetition, random, history in histories(moves=True):
        messages = list(DebeziumEncoder(setup, random).messages(history))
        schema = replace(setup.table, table="t")
        found = decoded("debezium", setting(schema, unwrapped=True, topic_prefix="p"), messages)
        assert newest(found) == end(history), repetition


def test_a_keyless_table_decoded_and_counted_equals_the_source() -> None:
    setup = ConnectorSetup("postgresql", True, True, False, keyless=True)
    for repetition, random, history in histories(moves=True):
        messages = list(DebeziumEncoder(setup, random).messages(history))
        found = decoded("debezium", setting(setup.table), messages)
        order_keys = [record.order_key for record in found if record.snapshot == "none"]
        assert len(set(order_keys)) == len(order_keys) == len(history.changes), "each change counts once"
        rows = Counter(record.after for record in found if record.after)
        rows.subtract(record.before for record in found if record.before)
        left = sorted((json.loads(text or "")["id"], text) for text in (+rows).elements())
        wanted = {row["id"]: row for row in end(history).values()}
        assert [json.loads(text or "") for _, text in left] == [wanted[key] for key in sorted(wanted)]
        assert min(rows.values()) >= 0, repetition


@pytest.mark.parametrize("looked_up", [True, False])
def test_documents_decoded_and_folded_equal_the_source(looked_up: bool) -> None:
    """Documents that an update does not contain are fetched."""
    for repetition, random, history in histories(moves=False):
        messages = list(mongo_encoder.messages(history, random, looked_up))
        random.shuffle(messages)
        found = decoded("debezium", DecoderSettings(1, None, {"topic_prefix": "p"}), messages)
        rows = in_order([*found, *found], ("_id", "document"))
        assert not looked_up or FETCHED not in rows.values()
        wanted = {f'["{key}"]': mongo_encoder.document(row) for key, row in history.end.items()}
        copied_rows = {key: wanted[key] if row is FETCHED else row["document"] for key, row in rows.items()}
        assert copied_rows == wanted, repetition


FEEDS = [
    *(
        Feed("json", mode, stamped)
        for mode in ("UPDATES", "NEW_IMAGE", "NEW_AND_OLD_IMAGES")
        for stamped in (True, False)
    ),
    Feed("json", "KEYS_ONLY"),
    Feed("json", "OLD_IMAGE"),
    Feed("debezium", "NEW_AND_OLD_IMAGES"),
    Feed("dynamodb", "NEW_AND_OLD_IMAGES"),
]


@pytest.mark.parametrize("feed", FEEDS, ids=str)
def test_a_changefeed_decoded_and_folded_equals_the_source(feed: Feed) -> None:
    """If a feed sends keys only, the changed rows are fetched, and no others."""
    for repetition, random, history in histories(moves=False):
        messages = list(YdbEncoder(feed, random).messages(history))
        if feed.timestamps:
            random.shuffle(messages)
        found = decoded("ydb", setting(YDB_TABLE, mode=feed.mode), messages)
        rows = in_order([*found, *found], COLUMNS)
        wanted = end(history, "Z")
        fetched = {key for key, row in rows.items() if row is FETCHED}
        assert bool(fetched) <= (feed.mode in ("KEYS_ONLY", "OLD_IMAGE"))
        copied_rows = {key: wanted[key] if key in fetched else row for key, row in rows.items()}
        assert copied_rows == wanted, repetition


STREAMS = [Stream(source, avro) for source in ("mysql", "oracle", "postgresql", "sqlserver") for avro in (True, False)]


@pytest.mark.parametrize("stream", STREAMS, ids=str)
def test_files_in_any_order_decoded_and_folded_equal_the_source(stream: Stream) -> None:
    for repetition, random, history in histories(moves=True):
        messages = list(DatastreamEncoder(stream, random).messages(history))
        found = decoded("datastream", setting(stream.table), messages)
        assert newest(found) == end(history), repetition
