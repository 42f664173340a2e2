"""A simulated source, told in every format, folded: the copy is what the source holds.

``CDC_HISTORIES`` says how many histories of each; ``CDC_SEED`` plays them again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats import mongo_encoder
from tests.connectors.formats.datastream_encoder import DatastreamEncoder, Stream
from tests.connectors.formats.debezium_encoder import DebeziumEncoder, Manner
from tests.connectors.formats.folded import FETCHED, in_order, newest
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.simulator import COLUMNS, Change, History, Row, Simulator
from tests.connectors.formats.ydb_encoder import TABLE as YDB_TABLE
from tests.connectors.formats.ydb_encoder import Feed, YdbEncoder
from tests.model import seeds

HISTORIES = seeds.histories(25)
TRANSACTIONS = 8


def told(row: Row, zone: str = "") -> dict[str, Any]:
    """A row as the change log has it."""
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
    """What happened, in the order in which it became true: which key went or came."""
    found = []
    for change in changes:
        if change.old and (change.new is None or change.moved):
            found.append(("went", change.old[0]))
        if change.new:
            found.append(("came", change.new[0]))
    return found


def order_of(found: list[ChangeRecord]) -> list[tuple[str, int]]:
    streamed = sorted((one for one in found if one.snapshot == "none"), key=lambda one: one.order_key)
    return [
        ("went", json.loads(one.key_before or "")[0])
        if one.op == Operation.DELETE
        else ("came", json.loads(one.key or "")[0])
        for one in streamed
    ]


def end(history: History, zone: str = "") -> dict[str, dict[str, Any]]:
    return {f"[{key}]": told(row, zone) for key, row in history.end.items()}


MANNERS = [
    Manner(connector, schemas, transactions, headers)
    for connector in ("mysql", "mariadb", "postgresql", "sqlserver", "oracle")
    for schemas, transactions, headers in ((True, True, True), (False, True, False), (False, False, False))
]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_debezium_told_and_folded_is_the_source(manner: Manner) -> None:
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=manner.connector == "oracle").history(TRANSACTIONS)
        messages = list(DebeziumEncoder(manner, random).messages(history))
        random.shuffle(messages)
        told_setting = setting(manner.table, full_before=manner.connector == "oracle", topic_prefix="p")
        found = decoded("debezium", told_setting, messages)
        why = f"CDC_SEED={seed}, history {number}"
        assert order_of(found) == halves(history.changes), why
        assert in_order([*found, *found], COLUMNS) == end(history), why


def test_unwrapped_rows_told_and_folded_are_the_source() -> None:
    """They have no place but their offset, so they come as they were sent; a moved row is another one."""
    manner = Manner("mysql", False, False, False, unwrapped=True)
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=False).history(TRANSACTIONS)
        messages = list(DebeziumEncoder(manner, random).messages(history))
        schema = replace(manner.table, table="t")
        found = decoded("debezium", setting(schema, unwrapped=True, topic_prefix="p"), messages)
        assert newest(found) == end(history), f"CDC_SEED={seed}, history {number}"


def test_a_table_without_key_told_and_counted_is_the_source() -> None:
    manner = Manner("postgresql", True, True, False, keyless=True)
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=False).history(TRANSACTIONS)
        messages = list(DebeziumEncoder(manner, random).messages(history))
        found = decoded("debezium", setting(manner.table), messages)
        places = [record.order_key for record in found if record.snapshot == "none"]
        assert len(set(places)) == len(places) == len(history.changes), "each change counts once, by its place"
        rows = Counter(record.after for record in found if record.after)
        rows.subtract(record.before for record in found if record.before)
        left = sorted((json.loads(text or "")["id"], text) for text in (+rows).elements())
        wanted = {row["id"]: row for row in end(history).values()}
        assert [json.loads(text or "") for _, text in left] == [wanted[key] for key in sorted(wanted)]
        assert min(rows.values()) >= 0, f"CDC_SEED={seed}, history {number}"


@pytest.mark.parametrize("looked_up", [True, False])
def test_documents_told_and_folded_are_the_source(looked_up: bool) -> None:
    """Documents that an update does not bring are asked for."""
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=False, late_check=False).history(TRANSACTIONS)
        messages = list(mongo_encoder.messages(history, random, looked_up))
        random.shuffle(messages)
        found = decoded("debezium", DecoderSettings(1, None, {"topic_prefix": "p"}), messages)
        rows = in_order([*found, *found], ("_id", "document"))
        assert not looked_up or FETCHED not in rows.values()
        wanted = {f'["{key}"]': mongo_encoder.document(row) for key, row in history.end.items()}
        told_rows = {key: wanted[key] if row is FETCHED else row["document"] for key, row in rows.items()}
        assert told_rows == wanted, f"CDC_SEED={seed}, history {number}"


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
def test_a_changefeed_told_and_folded_is_the_source(feed: Feed) -> None:
    """Where a feed tells keys alone, the rows that changed are asked for; no other."""
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=False, late_check=False).history(TRANSACTIONS)
        messages = list(YdbEncoder(feed, random).messages(history))
        if feed.timestamps:
            random.shuffle(messages)
        found = decoded("ydb", setting(YDB_TABLE, mode=feed.mode), messages)
        rows = in_order([*found, *found], COLUMNS)
        wanted = end(history, "Z")
        fetched = {key for key, row in rows.items() if row is FETCHED}
        assert bool(fetched) <= (feed.mode in ("KEYS_ONLY", "OLD_IMAGE"))
        told_rows = {key: wanted[key] if key in fetched else row for key, row in rows.items()}
        assert told_rows == wanted, f"CDC_SEED={seed}, history {number}"


STREAMS = [Stream(source, avro) for source in ("mysql", "oracle", "postgresql", "sqlserver") for avro in (True, False)]


@pytest.mark.parametrize("stream", STREAMS, ids=str)
def test_files_in_any_order_told_and_folded_are_the_source(stream: Stream) -> None:
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=False).history(TRANSACTIONS)
        messages = list(DatastreamEncoder(stream, random).messages(history))
        found = decoded("datastream", setting(stream.table), messages)
        assert newest(found) == end(history), f"CDC_SEED={seed}, history {number}"
