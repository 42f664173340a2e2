"""Fingerprints and texts of the typed definition."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import get_args, get_type_hints

import pytest

from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Comparison,
    Condition,
    Definition,
    Ignorable,
    OnDelete,
    Source,
    Staging,
    TableRule,
    Target,
    format_duration,
    log_fingerprint,
    rule_fingerprint,
)
from airflow_cdc_provider.core.spec.history import History

SHOP = Definition(
    name="shop",
    source=Source("postgres", "db"),
    target=Target("delta", "/lake"),
    tables=(TableRule("public.a"),),
    staging=Staging("/staging"),
)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": Columns(exclude=("note",))},
        {"where": (Condition("a", Comparison.IS_NULL),)},
        {"key": ("id",)},
        {"on_delete": OnDelete.SOFT},
    ],
    ids=lambda change: next(iter(change)),
)
def test_options_that_decide_the_content_of_a_table_change_its_fingerprint(change: dict[str, object]) -> None:
    rule = SHOP.tables[0]
    assert rule_fingerprint(SHOP, replace(rule, **change)) != rule_fingerprint(SHOP, rule)  # type: ignore[arg-type]


def test_the_change_log_of_a_table_is_the_same_for_copies_that_only_apply_it_otherwise() -> None:
    rule = SHOP.tables[0]
    applied = replace(rule, on_delete=OnDelete.SOFT, ignore=(Ignorable.TRUNCATE,), history=History.SCD2)
    assert log_fingerprint(SHOP, applied) == log_fingerprint(SHOP, rule)
    for read in (
        replace(rule, where=(Condition("a", Comparison.IS_NULL),)),
        replace(rule, columns=Columns(mask={"a": 1})),
    ):
        assert log_fingerprint(SHOP, read) != log_fingerprint(SHOP, rule)


def test_another_source_changes_every_fingerprint() -> None:
    other = replace(SHOP, source=Source("postgres", "other"))
    assert rule_fingerprint(other, SHOP.tables[0]) != rule_fingerprint(SHOP, SHOP.tables[0])


def test_layout_schedule_and_names_do_not_change_a_fingerprint() -> None:
    rule = SHOP.tables[0]
    laid_out = replace(rule, cluster_by=("a",), target="b", source="public.*")
    later = replace(SHOP, schedule="@daily", source=replace(SHOP.source, options={"publication": "p"}))
    assert rule_fingerprint(later, laid_out) == rule_fingerprint(SHOP, rule)


def test_the_order_of_key_columns_changes_the_fingerprint() -> None:
    one, other = (replace(SHOP.tables[0], key=key) for key in (("a", "b"), ("b", "a")))
    assert rule_fingerprint(SHOP, one) != rule_fingerprint(SHOP, other)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(days=7), "7d"),
        (timedelta(hours=36), "36h"),
        (timedelta(minutes=90), "90m"),
        (timedelta(seconds=61), "61s"),
        (timedelta(0), "0d"),
    ],
)
def test_a_duration_is_written_in_its_largest_whole_unit(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


def test_every_key_is_documented() -> None:
    todo: list[type] = [Definition]
    for kind in todo:
        hints = get_type_hints(kind)
        for member in fields(kind):
            assert member.metadata["doc"].endswith("."), f"{kind.__name__}.{member.name}"
            todo += [a for a in (hints[member.name], *get_args(hints[member.name])) if is_dataclass(a)]  # type: ignore[misc]
    assert {kind.__name__ for kind in todo} >= {"Condition", "Columns", "Staging", "Dag"}
