from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import hypothesis.extra.numpy  # otherwise both are imported within a draw, where Python 3.11 may fail to compile them
import hypothesis.strategies._internal.types  # noqa: F401
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.steps import Batch, WindowResult
from airflow_cdc_provider.core.log.change_log import DataFile, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    numbers: tuple[int, ...] = ()
    when: datetime | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    colour: Colour = Colour.RED
    wait: timedelta = timedelta(0)
    inner: Inner = field(default_factory=Inner)
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = field(default_factory=dict)
    maybe: Inner | None = None
    anything: dict[str, Any] = field(default_factory=dict)
    value: str | int | float | bool | None = None
    one_or_many: str | tuple[str, ...] | None = None


@pytest.mark.parametrize("kind", [Manifest, Batch, TableSchema, Hole, WindowResult])
@settings(max_examples=25)
@given(data=st.data())
def test_a_value_is_equal_after_a_round_trip_through_json(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    assert from_plain(kind, json.loads(json.dumps(to_plain(value)))) == value


def test_every_kind_of_field_is_read_as_it_was_written() -> None:
    inner = Inner((1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    value = Outer(
        "n", Colour.RED, timedelta(days=7), inner, (inner, Inner()), {"a": inner}, inner, {"x": [1]}, 5, ("a",)
    )
    assert from_plain(Outer, json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize("scalar", ["5", 5, 5.5, True, None])
def test_a_scalar_keeps_its_type(scalar: object) -> None:
    assert from_plain(Outer, to_plain(Outer("n", value=scalar))).value is scalar  # type: ignore[arg-type]


def test_an_older_reader_ignores_unknown_fields() -> None:
    plain = {**to_plain(DataFile("p", 1, 2, "s")), "colour": "red"}
    assert from_plain(DataFile, plain) == DataFile("p", 1, 2, "s")


def test_a_newer_reader_fills_in_fields_that_an_older_file_lacks() -> None:
    assert from_plain(TableSlice, {"definition_sha256": "d"}) == TableSlice("d")


def test_a_missing_required_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="rows"):
        from_plain(DataFile, {"path": "p"})


def test_members_have_the_order_of_the_fields() -> None:
    assert list(to_plain(Outer("n"))) == [
        "name", "colour", "wait", "inner", "many", "by_name", "maybe", "anything", "value", "one_or_many",
    ]  # fmt: skip
