"""The decoder on recorded messages of a real server, and on messages that no server sends."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.connectors.sources.postgres.copy import PART_BYTES, block_ranges, key_ranges, parts
from airflow_cdc_provider.connectors.sources.postgres.dead_letters import reread
from airflow_cdc_provider.connectors.sources.postgres.decode import PgoutputDecoder
from airflow_cdc_provider.connectors.sources.postgres.messages import (
    MALFORMED,
    parse_begin,
    parse_commit,
    parse_relation,
    parse_truncate,
)
from airflow_cdc_provider.connectors.sources.postgres.positions import floor_key, lsn_text, parse_lsn
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalog
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from tests.model import seeds

GOLDEN = [
    (lsn, bytes.fromhex(text))
    for lsn, text in json.loads(Path(__file__).with_name("pgoutput_golden.json").read_text())["messages"]
]
ROWS = [(lsn, data) for lsn, data in GOLDEN if data[:1] in (b"I", b"U", b"D", b"T")]
ROW_LETTERS = (b"I", b"U", b"D")
MOVED = next((lsn, data) for lsn, data in ROWS if data[:1] == b"U" and data[5:6] == b"K")
NOT_IGNORED = [(lsn, data) for lsn, data in GOLDEN if data[:1] != b"Y"]
BEYOND = 1 << 62


def column(name: str, kind: Kind, *digits: int) -> Column:
    return Column(name, LogicalType(kind, *digits))


ITEM = TableSchema(
    "public.item",
    (
        column("id", Kind.INT32),
        column("name", Kind.TEXT),
        column("price", Kind.DECIMAL, 10, 2),
        column("at", Kind.TIMESTAMPTZ),
        column("mood", Kind.TEXT),
        column("body", Kind.TEXT),
    ),
    ("id",),
)
VISIT = TableSchema("public.visit", (column("page", Kind.TEXT), column("n", Kind.INT32)))


def task(schema: TableSchema) -> TableTask:
    return TableTask(schema.table, schema.table, schema, TableRule(schema.table), "0" * 64, TableState.REPLICATING)


def decoder(lo: int = 0, limit: int = BEYOND) -> PgoutputDecoder:
    return PgoutputDecoder([task(ITEM), task(VISIT)], Catalog({}, {}), 7, lo, limit)


def decoded(lo: int = 0, limit: int = BEYOND) -> list[StreamItem]:
    made = decoder(lo, limit)
    for lsn, data in GOLDEN:
        made.feed([(lsn, data)])
        if made.ended:
            break
    return made.items


def in_a_transaction() -> PgoutputDecoder:
    """A decoder with both relations, in a transaction."""
    made = decoder()
    for lsn, data in GOLDEN:
        if data[:1] == b"R":
            made.feed([(lsn, data)])
    made.feed([GOLDEN[0]])
    return made


def test_the_recorded_messages_are_decoded_to_the_executed_changes() -> None:
    found = [item for item in decoded() if isinstance(item, ChangeRecord)]
    body = json.loads(found[1].after or "")["body"]
    assert len(body) == 2560
    assert [(r.table[7:], r.op, r.key_before, r.key, r.before, r.after) for r in found if r.op != "schema"] == [
        (
            "item",
            "insert",
            None,
            "[1]",
            None,
            '{"id":1,"name":"é \\"q\\"","price":"1.50","at":"2024-01-01T10:00:00.250000Z","mood":"ok","body":"'
            + body
            + '"}',
        ),
        ("item", "insert", None, "[2]", None, '{"id":2,"name":null,"price":null,"at":null,"mood":null,"body":null}'),
        (
            "item",
            "update",
            "[1]",
            "[1]",
            None,
            '{"id":1,"name":"é \\"q\\"","price":"2.00","at":"2024-01-01T10:00:00.250000Z","mood":"ok"}',
        ),
        ("item", "delete", "[2]", None, '{"id":2}', None),
        ("item", "insert", None, "[3]", None, '{"id":3,"name":null,"price":null,"at":null,"mood":null,"body":null}'),
        ("item", "delete", "[3]", None, '{"id":3}', None),
        ("visit", "insert", None, None, None, '{"page":"/","n":1}'),
        ("visit", "update", None, None, '{"page":"/","n":1}', '{"page":"/","n":2}'),
        ("visit", "delete", None, None, '{"page":"/","n":2}', None),
        ("item", "truncate", None, None, None, None),
        ("visit", "truncate", None, None, None, None),
        (
            "item",
            "insert",
            None,
            "[4]",
            None,
            '{"id":4,"name":null,"price":null,"at":null,"mood":null,"body":null,"more":7}',
        ),
    ]


def test_order_keys_grow_with_the_stream_and_start_with_the_epoch() -> None:
    keys = [item.order_key for item in decoded() if isinstance(item, ChangeRecord)]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert {(len(key), key[:8]) for key in keys} == {(50, "00000007")}


def test_two_windows_cut_between_any_transactions_have_the_same_records() -> None:
    def rows(items: list[StreamItem]) -> list[ChangeRecord]:
        return [item for item in items if isinstance(item, ChangeRecord) and item.op != "schema"]

    whole = decoded()
    for boundary in [item for item in whole if isinstance(item, Boundary)]:
        cut = parse_lsn(boundary.position["slot"])
        assert rows(decoded(limit=cut)) + rows(decoded(lo=cut)) == rows(whole)


def test_a_transaction_before_the_floor_is_in_the_copy_and_one_at_it_is_not() -> None:
    commit = parse_lsn("0/1AFB000")
    before = f"{7:08x}{commit:016x}"
    assert before + "f" * 26 < floor_key(7, commit + 1)
    assert before + "0" * 25 + "1" > floor_key(7, commit)


@given(st.integers(0, (1 << 63) - 1))
def test_the_text_of_an_lsn_is_read_back(lsn: int) -> None:
    assert parse_lsn(lsn_text(lsn)) == lsn


def up_to(message: tuple[int, bytes]) -> PgoutputDecoder:
    """A decoder that has read everything before this message."""
    made = decoder()
    for lsn, data in GOLDEN[: GOLDEN.index(message)]:
        made.feed([(lsn, data)])
    made.items.clear()
    return made


def undecoded_change(made: PgoutputDecoder, lsn: int, data: bytes) -> list[ChangeRecord]:
    """The undecoded record of a change; it contains every byte."""
    made.feed([(lsn, data)])
    found = [item for item in made.items if isinstance(item, ChangeRecord) and item.op != "schema"]
    what = undecoded(found[-1])
    assert what is not None and b64decode(what.raw) == data and what.reason
    return found


@given(st.sampled_from(NOT_IGNORED), st.data())
def test_a_truncated_message_is_unreadable_or_refused_with_its_position(
    message: tuple[int, bytes], data: st.DataObject
) -> None:
    lsn, whole = message
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    made = in_a_transaction()
    if whole[:1] in ROW_LETTERS and len(cut) > 4:
        assert undecoded_change(made, lsn, cut)
        return
    with pytest.raises(IntegrityBroken) as caught:
        made.feed([(lsn, cut)])
    assert lsn_text(lsn) in str(caught.value)


@given(st.sampled_from(NOT_IGNORED), st.binary(min_size=1, max_size=20))
def test_a_message_with_extra_bytes_is_unreadable_or_refused(message: tuple[int, bytes], more: bytes) -> None:
    if message[1][:1] in ROW_LETTERS:
        assert undecoded_change(in_a_transaction(), message[0], message[1] + more)
        return
    with pytest.raises(IntegrityBroken):
        in_a_transaction().feed([(message[0], message[1] + more)])


@settings(max_examples=seeds.histories(200))
@given(st.sampled_from(ROWS), st.data())
def test_a_damaged_row_is_unreadable_or_still_a_complete_row(message: tuple[int, bytes], data: st.DataObject) -> None:
    lsn, whole = message
    at = data.draw(st.integers(1, len(whole) - 1))
    damaged = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    made = in_a_transaction()
    try:
        made.feed([(lsn, damaged)])
    except IntegrityBroken:
        return
    for item in made.items:
        if isinstance(item, ChangeRecord) and item.after is not None:
            json.loads(item.after)
            assert item.table == VISIT.table or item.key is not None or item.op in ("schema", "unreadable")


def is_message(noise: bytes) -> bool:
    parse = {b"B": parse_begin, b"C": parse_commit, b"R": parse_relation, b"T": parse_truncate}.get(noise[:1])
    try:
        return parse is not None and bool(parse(noise))
    except MALFORMED:
        return False


@settings(max_examples=seeds.histories(200))
@given(st.binary(max_size=60))
@example(b"C" + bytes(25))
@example(b"T" + bytes(5))
def test_random_bytes_are_refused(noise: bytes) -> None:
    assume(not is_message(noise))
    made = in_a_transaction()
    if noise[:1] in (b"Y", b"O", b"M"):
        made.feed([(1, noise)])
        assert made.items == []
    else:
        with pytest.raises(IntegrityBroken):
            made.feed([(1, noise)])


def test_a_row_with_one_bad_cell_keeps_its_key_and_its_other_columns() -> None:
    lsn, insert = ROWS[1]
    (record,) = undecoded_change(up_to(ROWS[1]), lsn, insert.replace(b"t\x00\x00\x00\x012", b"t\x00\x00\x00\x022x", 1))
    assert record.key is None, "the key itself is unreadable"
    lsn, update = ROWS[2]
    (record,) = undecoded_change(up_to(ROWS[2]), lsn, update.replace(b"\x042.00", b"\x042.0x", 1))
    what = undecoded(record)
    assert what is not None
    assert (record.key, what.op, what.columns) == ("[1]", "update", ("price",))
    assert what.known.keys() == {"id", "name", "at", "mood"} and "2.0x" not in what.reason


def test_an_unreadable_key_change_keeps_the_departing_key() -> None:
    lsn, moved = MOVED
    departed, arrived = undecoded_change(up_to(MOVED), lsn, moved.replace(b"n" * 5, b"nt\0\0\0\1xnnn"))
    assert (departed.op, departed.key_before, departed.phase) == ("delete", "[2]", 0)
    assert (arrived.op, arrived.key, arrived.phase, arrived.link_id) == ("unreadable", "[3]", 1, departed.link_id)
    assert departed.order_key < arrived.order_key


def test_a_change_decoded_again_equals_the_original_change() -> None:
    """As with a newer decoder: the bytes are corrected, the rest stays."""
    schemas = {item.schema_id: item for item in decoded() if isinstance(item, TableSchema)}
    for lsn, data in ROWS:
        if data[:1] not in ROW_LETTERS:
            continue
        right = up_to((lsn, data))
        right.feed([(lsn, data)])
        wanted = [item for item in right.items if isinstance(item, ChangeRecord) and item.op != "schema"]
        found = undecoded_change(up_to((lsn, data)), lsn, data + b"x")
        schema = schemas[found[-1].schema_id]
        assert reread(found[-1], task(schema), schema) == [found[-1]]
        what = undecoded(found[-1])
        assert what is not None
        mended = replace(found[-1], after=canonical(to_plain(replace(what, raw=b64encode(data).decode()))))
        assert reread(mended, task(schema), schema) == [replace(one, event_id=mended.event_id) for one in wanted]


def test_a_row_of_an_unknown_relation_is_refused() -> None:
    made = decoder()
    made.feed([GOLDEN[0]])
    with pytest.raises(IntegrityBroken, match="relation"):
        made.feed([ROWS[0]])


@given(st.integers(0, 10_000), st.integers(0, 2**42), st.integers(1, 64))
def test_block_ranges_cover_the_heap_without_overlap(blocks: int, size: int, cores: int) -> None:
    number = parts(blocks, size, cores)
    assert (number <= max(1, blocks) and number * PART_BYTES >= size) or number == blocks
    assert number == 1 or number == blocks or number % cores == 0, "all cores are busy to the end"
    ranges = block_ranges(blocks, number)
    assert len(ranges) == max(1, number)
    if len(ranges) == 1:
        assert ranges == ("TRUE",)
        return
    name = '"_cdc_ctid"'
    lows = [int(text.split(f"{name} >= '(")[1].split(",")[0]) for text in ranges[1:]]
    highs = [int(text.split(f"{name} < '(")[1].split(",")[0]) for text in ranges[:-1]]
    assert lows == highs == sorted(set(lows)) and lows[0] > 0 and lows[-1] < blocks


@given(st.lists(st.integers(-(2**40), 2**40), min_size=0, max_size=40, unique=True), st.integers(1, 90))
def test_key_ranges_contain_each_value_once(bounds: list[int], number: int) -> None:
    schema = TableSchema("public.a", (Column("id", LogicalType(Kind.INT64)),), ("id",))
    ranges = key_ranges(schema, "{" + ",".join(map(str, sorted(bounds))) + "}", number)
    if len(bounds) < 2 or number == 1:
        assert ranges == ()
        return
    lows = [int(text.split('"id" >= ')[1].split(" ")[0]) for text in ranges[1:]]
    highs = [int(text.split('"id" < ')[1]) for text in ranges[:-1]]
    assert lows == highs == sorted(set(lows)) and len(ranges) <= number
    assert min(bounds) <= lows[0] and lows[-1] < max(bounds)
