"""Messages decoded in a batch equal messages decoded one by one, whatever the batch contains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, DecodesMany, Message
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.blocks import unpacked
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.declared_columns import every_kind
from tests.connectors.formats.foreign_samples import SAMPLES
from tests.connectors.formats.golden import as_json, decoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.formats.test_format_contract import GOLDENS
from tests.connectors.formats.test_format_fuzz import PIECES, changed
from tests.connectors.formats.test_simulated_sources import FEEDS, SETUPS, YDB_TABLE, setting
from tests.connectors.formats.ydb_encoder import Feed, YdbEncoder
from tests.model import seeds

TOGETHER = [kind for kind in FORMATS if isinstance(decoder(kind, DecoderSettings()), DecodesMany)]
COPIES = 80


@cache
def cases(kind: str) -> list[tuple[Message, DecoderSettings]]:
    """All goldens, a row with undeclared types of the source, and changes of a YDB feed that are decoded in a batch,
    which no golden of YDB is."""
    found = [(one.message, one.setting()) for one in GOLDENS[kind]]
    found.append(every_kind(kind))
    if kind == "ydb":
        feed, random = Feed("json", "NEW_AND_OLD_IMAGES"), Random(3)
        messages = list(YdbEncoder(feed, random).messages(Simulator(random, moves=False, late_check=False).history(8)))
        found += [(one, setting(YDB_TABLE, mode=feed.mode)) for one in messages[2:12]]
    return found


Decoded = tuple[list[ChangeRecord], set[TableSchema], int]


def as_decoded(items: Sequence[object]) -> Decoded:
    """Records in a fixed order, schemas, and the number of counted messages."""
    records = [item for item in items if isinstance(item, ChangeRecord)]
    records.sort(key=lambda one: [str(getattr(one, name)) for name in FIELDS])
    schemas = {item for item in items if isinstance(item, TableSchema)}
    return records, schemas, sum(item.count for item in items if isinstance(item, Ignored))


def decode_both_ways(
    kind: str, setting: DecoderSettings, messages: Sequence[Message], at_once: int
) -> tuple[Decoded, Decoded, int]:
    """The result in batches, the result one by one, and the number of messages in blocks."""
    made, alone = decoder(kind, setting), decoder(kind, setting)
    assert isinstance(made, DecodesMany)
    many = [item for n in range(0, len(messages), at_once) for item in made.decode_many(messages[n : n + at_once])]
    in_blocks = sum(item.columns.num_rows for item in many if isinstance(item, Block))
    one_by_one = [item for message in messages for item in alone.decode(message)]
    return as_decoded(list(unpacked(many))), as_decoded(one_by_one), in_blocks


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_a_simulated_source_in_debezium_is_decoded_equally_in_batches(setup: ConnectorSetup) -> None:
    seed = seeds.seed()
    for number in range(seeds.histories(3)):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=setup.connector == "oracle").history(120)
        messages = list(DebeziumEncoder(setup, random).messages(history))
        in_blocks = require_same("debezium", setting(setup.table, topic_prefix="p"), messages, random, seed)
        assert in_blocks > len(messages) / 4


@pytest.mark.parametrize("feed", FEEDS, ids=str)
def test_a_simulated_source_in_ydb_is_decoded_equally_in_batches(feed: Feed) -> None:
    seed = seeds.seed()
    for number in range(seeds.histories(3)):
        random = Random(f"{seed} {number}")
        messages = list(
            YdbEncoder(feed, random).messages(Simulator(random, moves=False, late_check=False).history(120))
        )
        in_blocks = require_same("ydb", setting(YDB_TABLE, mode=feed.mode), messages, random, seed)
        whole = feed.form == "json" and feed.timestamps and "NEW" in feed.mode
        assert not whole or in_blocks > len(messages) / 2


def require_same(kind: str, setting: DecoderSettings, messages: list[Message], random: Random, seed: str) -> int:
    random.shuffle(messages)
    together, alone, in_blocks = decode_both_ways(kind, setting, messages, random.choice((100, 4096)))
    assert together == alone, f"CDC_SEED={seed}"
    return in_blocks


@pytest.mark.parametrize("kind", TOGETHER)
def test_each_message_among_copies_of_itself_is_decoded_equally(kind: str) -> None:
    _, decoder_settings = cases(kind)[0]
    foreign = [(Message(as_json(sample.message), topic="srv.inv.s"), decoder_settings) for sample in SAMPLES.values()]
    for message, decoder_settings in [*cases(kind), *foreign]:
        together, alone, _ = decode_both_ways(
            kind, decoder_settings, [message._replace(offset=n) for n in range(COPIES)], COPIES
        )
        assert together == alone, message


@pytest.mark.parametrize("kind", TOGETHER)
def test_a_message_with_a_missing_member_or_another_key_among_complete_ones_is_decoded_equally(kind: str) -> None:
    """The other messages remain in blocks. A random twentieth of all variants is tried, at night half of them."""
    seed = seeds.seed()
    random, tried = Random(seed), 0
    for message, decoder_settings in cases(kind):
        messages = [message._replace(offset=offset) for offset in range(COPIES)]
        if not decode_both_ways(kind, decoder_settings, messages, COPIES)[2]:
            continue
        for part in ("value", "key"):
            for other in variants(json.loads(getattr(message, part) or b"{}")):
                if random.random() > seeds.times() / 20:
                    continue
                tried += 1
                text = json.dumps(other, separators=(",", ":"), ensure_ascii=False).encode()
                odd = [*messages[:50], messages[50]._replace(**{part: text}), *messages[51:]]
                together, alone, in_blocks = decode_both_ways(kind, decoder_settings, odd, COPIES)
                assert together == alone and in_blocks > COPIES / 4, f"CDC_SEED={seed}: {text!r}"
    assert tried > 3


@pytest.mark.parametrize("kind", TOGETHER)
def test_messages_are_decoded_equally_whatever_they_have_in_common(kind: str) -> None:
    """The form of a block is derived from one of its messages, whatever that contains."""
    seed = seeds.seed()
    random, in_blocks = Random(f"{seed} {kind}"), 0
    for _ in range(seeds.histories(60)):
        message, decoder_settings = random.choice(cases(kind))
        if message.value is None:
            continue
        text = json.dumps(replaced(json.loads(message.value), random), separators=(",", ":")).encode()
        messages = [message._replace(value=text, offset=offset) for offset in range(COPIES)]
        together, alone, found = decode_both_ways(kind, decoder_settings, messages, COPIES)
        assert together == alone, f"CDC_SEED={seed}: {text!r}"
        in_blocks += found
    assert in_blocks


def replaced(value: Any, random: Random) -> Any:
    """With another value at one position."""
    if isinstance(value, dict) and value:
        name = random.choice([one for one in value if one != "schema"] or list(value))
        return {**value, name: replaced(value[name], random)}
    if isinstance(value, list) and value:
        return [replaced(value[0], random), *value[1:]]
    return random.choice((None, True, 5, -1, 1.5, 1 << 63, "x", "", [], {}, "AQ==", "2024-05-06T07:08:09Z"))


def variants(value: object) -> Iterator[object]:
    """Without one of its members, or with another number at one position."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name == "schema" and isinstance(one, dict):
                continue
            yield {key: member for key, member in value.items() if key != name}
            yield from ({**value, name: other} for other in variants(one))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in variants(one))
    elif type(value) is int:
        yield value + 1


@pytest.mark.parametrize("kind", TOGETHER)
@given(st.data())
@settings(max_examples=seeds.histories(60), deadline=None)
def test_messages_with_random_content_among_others_are_decoded_equally(kind: str, data: st.DataObject) -> None:
    message, decoder_settings = data.draw(st.sampled_from(cases(kind)))
    messages = [message._replace(offset=offset) for offset in range(COPIES)]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, COPIES - 1))
        part = data.draw(st.sampled_from(["key", "value", "value"]))
        whole: bytes | None = getattr(messages[at], part)
        if whole is None:
            continue
        if data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(whole)))
            piece = data.draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)))
            whole = whole[:index] + piece + whole[index + data.draw(st.integers(0, 3)) :]
        else:
            try:
                whole = json.dumps(changed(json.loads(whole), data), separators=(",", ":"), ensure_ascii=False).encode()
            except ValueError:
                continue
        messages[at] = messages[at]._replace(**{part: whole})
    together, alone, _ = decode_both_ways(kind, decoder_settings, messages, COPIES)
    assert together == alone
