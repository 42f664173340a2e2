"""Messages decoded together are what they are one by one, whatever is among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.formats.message import DecodesMany, Message, Setting
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.tables import TableSchema
from tests.blocks import unpacked
from tests.connectors.formats.debezium_encoder import DebeziumEncoder, Manner
from tests.connectors.formats.golden import Golden, decoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.formats.test_format_contract import GOLDENS
from tests.connectors.formats.test_format_fuzz import PIECES, changed
from tests.connectors.formats.test_simulated_sources import FEEDS, MANNERS, YDB_TABLE, setting
from tests.connectors.formats.ydb_encoder import Feed, YdbEncoder
from tests.model import seeds

TOGETHER = [kind for kind in FORMATS if isinstance(decoder(kind, Setting()), DecodesMany)]
COPIES = 80
Said = tuple[list[ChangeRecord], set[TableSchema], int]


def said(items: Sequence[object]) -> Said:
    """Records in the order of their keys, schemas, how many messages were counted only."""
    records = [item for item in items if isinstance(item, ChangeRecord)]
    records.sort(key=lambda one: json.dumps(to_plain(one), default=str))
    schemas = {item for item in items if isinstance(item, TableSchema)}
    return records, schemas, sum(item.count for item in items if isinstance(item, Ignored))


def both(kind: str, setting: Setting, messages: Sequence[Message], at_once: int) -> tuple[Said, Said, int]:
    """What is said together, what one by one, and of how many messages together."""
    made, alone = decoder(kind, setting), decoder(kind, setting)
    assert isinstance(made, DecodesMany)
    many = [item for n in range(0, len(messages), at_once) for item in made.decode_many(messages[n : n + at_once])]
    in_blocks = sum(item.columns.num_rows for item in many if isinstance(item, Block))
    one_by_one = [item for message in messages for item in alone.decode(message)]
    return said(list(unpacked(many))), said(one_by_one), in_blocks


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_a_simulated_source_told_by_debezium(manner: Manner) -> None:
    seed = seeds.seed()
    for number in range(seeds.histories(3)):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=manner.connector == "oracle").history(120)
        messages = list(DebeziumEncoder(manner, random).messages(history))
        in_blocks = require_same("debezium", setting(manner.table, topic_prefix="p"), messages, random, seed)
        assert in_blocks > len(messages) / 4


@pytest.mark.parametrize("feed", FEEDS, ids=str)
def test_a_simulated_source_told_by_ydb(feed: Feed) -> None:
    seed = seeds.seed()
    for number in range(seeds.histories(3)):
        random = Random(f"{seed} {number}")
        messages = list(
            YdbEncoder(feed, random).messages(Simulator(random, moves=False, late_check=False).history(120))
        )
        in_blocks = require_same("ydb", setting(YDB_TABLE, mode=feed.mode), messages, random, seed)
        whole = feed.form == "json" and feed.timestamps and "NEW" in feed.mode
        assert not whole or in_blocks > len(messages) / 2


def require_same(kind: str, setting: Setting, messages: list[Message], random: Random, seed: str) -> int:
    random.shuffle(messages)
    together, alone, in_blocks = both(kind, setting, messages, random.choice((100, 4096)))
    assert together == alone, f"CDC_SEED={seed}"
    return in_blocks


@pytest.mark.parametrize(
    ("kind", "golden"),
    [(kind, one) for kind in TOGETHER for one in GOLDENS[kind]],
    ids=lambda one: getattr(one, "name", one),
)
def test_every_golden_among_its_likes(kind: str, golden: Golden) -> None:
    messages = [golden.message._replace(offset=offset) for offset in range(COPIES)]
    together, alone, _ = both(kind, golden.setting(), messages, COPIES)
    assert together == alone


@pytest.mark.parametrize("kind", TOGETHER)
@given(st.data())
@settings(max_examples=seeds.histories(150), deadline=None)
def test_messages_with_something_else_in_them_among_others(kind: str, data: st.DataObject) -> None:
    golden = data.draw(st.sampled_from(GOLDENS[kind]))
    messages = [golden.message._replace(offset=offset) for offset in range(COPIES)]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, COPIES - 1))
        part = data.draw(st.sampled_from(["key", "value", "value"]))
        whole: bytes | None = getattr(messages[at], part)
        if whole is None:
            continue
        if data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(whole)))
            piece = data.draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)))
            whole = whole[:place] + piece + whole[place + data.draw(st.integers(0, 3)) :]
        else:
            try:
                whole = json.dumps(changed(json.loads(whole), data), separators=(",", ":"), ensure_ascii=False).encode()
            except ValueError:
                continue
        messages[at] = messages[at]._replace(**{part: whole})
    together, alone, _ = both(kind, golden.setting(), messages, COPIES)
    assert together == alone
