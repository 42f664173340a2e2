"""Random bytes and damaged messages: each is decoded, becomes an unreadable record, or is counted.

``CDC_HISTORIES=10000`` tries as many of each.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats.golden import Golden, decoder
from tests.connectors.formats.invariants import require_valid
from tests.connectors.formats.test_format_contract import GOLDENS
from tests.model import seeds

tried = settings(
    max_examples=seeds.histories(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
AVRO = b"Obj\x01"

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(1 << 62, 1 << 66),
    st.sampled_from([-1, 0, 1 << 31, 1 << 63, 1 << 64, 10**40, 292278994, 253402300800000000]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(
        ["", "NaN", "-inf", "0/0", "1/2/3", "9999-12-31T23:59:60Z", "-0", "1e400", "AQ==", "\0", "[null,null]"]
    ),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
PIECES = [
    *(b'{}[]",:\\\n\0\xff'[n : n + 1] for n in range(11)),
    b"NaN",
    b"1e999",
    b"null",
    b"\\ud800",
    b"-",
    b"9" * 5000,
]


@pytest.mark.parametrize("kind", FORMATS)
@given(st.binary(max_size=80), st.one_of(st.none(), st.binary(max_size=20)), st.booleans())
@tried
def test_random_bytes_are_unreadable(kind: str, value: bytes, key: bytes | None, avro: bool) -> None:
    message = Message(AVRO + value if avro else value, key, topic="srv.inv.s", channel="c", offset=3)
    for golden in (GOLDENS[kind][0], GOLDENS[kind][-1]):
        require_valid(message, decoder(kind, golden.setting()).decode(message))


@pytest.mark.parametrize("kind", FORMATS)
@given(st.data())
@tried
def test_a_message_with_changed_bytes_is_decoded_or_unreadable(kind: str, data: st.DataObject) -> None:
    golden = data.draw(st.sampled_from(GOLDENS[kind]))
    part = data.draw(st.sampled_from(["key", "value"]))
    whole: bytes | None = getattr(golden.message, part)
    if whole is None:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole)))
        cut = data.draw(st.integers(0, 8))
        piece = data.draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)))
        whole = whole[:at] + piece + whole[at + cut :]
    check(kind, golden, golden.message._replace(**{part: whole}))


@pytest.mark.parametrize("kind", FORMATS)
@given(st.data())
@tried
def test_a_message_with_changed_values_is_decoded_or_unreadable(kind: str, data: st.DataObject) -> None:
    golden = data.draw(st.sampled_from(GOLDENS[kind]))
    part = data.draw(st.sampled_from(["key", "value", "value", "value"]))
    whole: bytes | None = getattr(golden.message, part)
    if whole is None or whole.startswith(AVRO):
        return
    value = json.loads(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(value, data)
    check(kind, golden, golden.message._replace(**{part: json.dumps(value).encode()}))


def changed(value: Any, data: st.DataObject) -> Any:
    """With one member removed, added, renamed, or of another value."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 5)) == 0:
        return data.draw(values)
    if isinstance(value, list):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], changed(value[at], data), *value[at + 1 :]]
    name = data.draw(st.sampled_from(sorted(value)))
    match data.draw(st.integers(0, 7)):
        case 0:
            return {one: member for one, member in value.items() if one != name}
        case 1:
            return {**value, data.draw(st.text(max_size=4)): data.draw(values)}
        case 2:
            return {(data.draw(st.text(max_size=4)) if one == name else one): member for one, member in value.items()}
    return {**value, name: changed(value[name], data)}


def check(kind: str, golden: Golden, message: Message) -> None:
    items = decoder(kind, golden.setting()).decode(message)
    require_valid(message, items)
    assert decoder(kind, golden.setting()).decode(message) == items, "the result is not deterministic"
