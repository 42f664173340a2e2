"""`snapshot` of a replicator and of its tables, and mistakes in it, each with its code and location."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from tests.provider.shop_yaml import GOOD, SOURCE, load, problems, rule, swap

FEED = swap(SOURCE, "{type: kafka, connection: broker, topics: [shop.*], format: debezium}")
WHERE = "[{column: id, op: '>=', value: 7}]"

MISTAKES = [
    ("an unknown mode", rule("snapshot: {mode: always}"), "DEF046", "7:22"),
    ("conditions of a replicator", GOOD + f"snapshot: {{where: {WHERE}}}\n", "DEF010", "8:12"),
    ("a comparison without a value", rule("snapshot: {where: [{column: id, op: '>='}]}"), "DEF027", "7:24"),
    ("conditions for no rows", rule(f"snapshot: {{mode: schema_only, where: {WHERE}}}"), "DEF090", "7:42"),
    (
        "conditions for no rows by default",
        rule(f"snapshot: {{where: {WHERE}}}") + "snapshot: {mode: schema_only}\n",
        "DEF090",
        "7:23",
    ),
    (
        "a condition on an excluded column",
        rule(f"columns: {{exclude: [id]}}\nsnapshot: {{where: {WHERE}}}"),
        "DEF021",
        "8:33",
    ),
    (
        "slices by an excluded column",
        rule("columns: {exclude: [at]}\nsnapshot: {slices: {column: at}}"),
        "DEF021",
        "8:33",
    ),
    ("slices without a column", rule("snapshot: {slices: {every: month}}"), "DEF095", "7:24"),
    ("slices of another length", rule("snapshot: {slices: {column: at, every: 30d}}"), "DEF046", "7:44"),
    ("no rows per second", rule("snapshot: {max_rows_per_second: 0}"), "DEF046", "7:37"),
    ("a feed", FEED + "snapshot: {mode: schema_only}\n", "DEF093", "8:11"),
    (
        "a table of a feed",
        FEED.replace("public.orders\n", "public.orders\n    snapshot: {mode: initial}\n"),
        "DEF093",
        "7:15",
    ),
]


@pytest.mark.parametrize(("yaml", "code", "location"), [case[1:] for case in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_a_mistake_is_reported_once_with_its_code_and_location(yaml: str, code: str, location: str) -> None:
    found = problems(yaml)
    assert [(problem.code, problem.where.split(" ")[0]) for problem in found] == [(code, f"shop.yaml:{location}")]


def test_valid_settings_are_loaded() -> None:
    definition = load(rule(f"snapshot: {{where: {WHERE}}}") + "snapshot: {mode: when_needed}\n")
    (table,) = definition.tables
    assert definition.snapshot.mode is SnapshotMode.WHEN_NEEDED
    assert table.snapshot == Snapshot(where=(Condition("id", Comparison.GREATER_OR_EQUAL, 7),))
