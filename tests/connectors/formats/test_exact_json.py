"""The fast and the exact way through JSON give one value, or both refuse the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from tests.model import seeds

TEXTS = st.text(st.sampled_from('ab":\\ {}[],\n\té\U0001f600\ud800'), max_size=6)
NUMBERS = ["0", "-0", "-0.0", "1e5", "1E999", "01", "1.", "9" * 30, "9" * 4301, "1.0", "NaN", "-Infinity"]
OTHERS = ["null", "true", "false", '"\\ud800"', '"\\/"', "x"]
SCALARS = st.one_of(st.sampled_from(NUMBERS), TEXTS.map(json.dumps), st.sampled_from(OTHERS))
BLANKS = st.sampled_from(["", "", " ", "\n"])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """Names may be repeated, and whitespace is added wherever JSON allows it."""
    members = draw(st.lists(st.tuples(TEXTS.map(json.dumps), inner), max_size=4))
    return "{" + ",".join(f"{draw(BLANKS)}{name}{draw(BLANKS)}:{draw(BLANKS)}{one}" for name, one in members) + "}"


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=4).map(lambda some: f"[{', '.join(some)}]")


VALUES = st.recursive(SCALARS, lambda inner: st.one_of(objects(inner), arrays(inner)), max_leaves=12)


def read(parse: Any, text: str) -> tuple[str, str]:
    """The value with the types of its numbers, or the error."""
    try:
        return "value", repr(parse(text))
    except DecodeError as error:
        return "refused", str(error)


@settings(max_examples=seeds.histories(300))
@given(st.one_of(VALUES, st.text(st.sampled_from('{}[]":,\\ 1ae'), max_size=12)))
@example('{"a\\\\":1,"b":2,"b":3}')
@example('{"a" :1,"b":2,"b":3}')
@example('{"a":":","b":2,"b":3}')
@example('{"a":"\\":","b":2,"b":3}')
@example('[{"a":1},{"a":1,"a":2}]')
def test_both_ways_give_the_same_result_for_every_text(text: str) -> None:
    assert read(exact_json.parse_text, text) == read(exact_json.parse_exactly, text)


@pytest.mark.parametrize("text", ['{"a":1,"b":{"c":[1.50,"x:y"]},"d":"\\"e\\":"}', "[[],{}]", '"a"', "1"])
def test_ordinary_text_is_read_the_fast_way(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_json, "parse_exactly", lambda text: pytest.fail("the long way"))
    assert repr(exact_json.parse_text(text)) == repr(json.loads(text, parse_float=exact_json.Decimal))
