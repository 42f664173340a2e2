"""The exact SQL for Delta."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS, TARGET_ALIAS, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.delta.ddl import add_columns, register, table_properties
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.types import column_type, literal

ID = Column("id", LogicalType(Kind.INT64), nullable=False)
NAME = Column("na`me", LogicalType(Kind.TEXT))
RATE = Column("rate", LogicalType(Kind.FLOAT64))
KEYED = TableSchema("public.t", (ID, NAME), ("id",))

TABLE = "delta.`/lake/t`"


def merged(plan: MergePlan) -> str:
    """With short aliases."""
    return merge_sql(TABLE, "staged", plan).replace(TARGET_ALIAS, "t").replace(STAGED_ALIAS, "s")


def test_a_keyed_merge() -> None:
    plan = MergePlan(KEYED, OnDelete.HARD, ranges=(("1", "5"), ("90", "99")))
    assert merged(plan).splitlines() == [
        "MERGE INTO delta.`/lake/t` t",
        "USING `staged` s",
        "ON (t.`id` BETWEEN 1 AND 5 OR t.`id` BETWEEN 90 AND 99) AND t.`id` = s.`id`",
        "WHEN MATCHED AND s._cdc_op IN ('U', 'P') AND s._cdc_order > t._cdc_order"
        " THEN UPDATE SET t.`na``me` = s.`na``me`, t.`_cdc_order` = s._cdc_order",
        "WHEN MATCHED AND s._cdc_op IN ('D') AND s._cdc_order > t._cdc_order THEN DELETE",
        "WHEN NOT MATCHED AND s._cdc_op IN ('U', 'P')"
        " THEN INSERT (`id`, `na``me`, `_cdc_order`) VALUES (s.`id`, s.`na``me`, s._cdc_order)",
    ]


def test_a_soft_partial_merge_keeps_unknown_values_and_refuses_missing_rows() -> None:
    known = "s._cdc_known IS NULL OR array_contains(s._cdc_known, 'na`me')"
    taken = f"CASE WHEN {known} THEN s.`na``me` ELSE t.`na``me` END"
    revived = f"CASE WHEN {known} THEN s.`na``me` WHEN t._cdc_deleted THEN NULL ELSE t.`na``me` END"
    assert merged(MergePlan(KEYED, OnDelete.SOFT, partial=True)).splitlines()[2:] == [
        "ON t.`id` = s.`id`",
        "WHEN MATCHED AND s._cdc_op IN ('U') AND s._cdc_known IS NOT NULL AND t._cdc_deleted"
        " AND s._cdc_order > t._cdc_order THEN UPDATE SET t.`id` = CAST(raise_error('CDC_NO_ROW') AS BIGINT)",
        "WHEN MATCHED AND s._cdc_op IN ('U', 'P') AND s._cdc_order > t._cdc_order"
        f" THEN UPDATE SET t.`na``me` = {revived}, t.`_cdc_order` = s._cdc_order, t.`_cdc_deleted` = false",
        "WHEN MATCHED AND s._cdc_op IN ('D') AND s._cdc_order > t._cdc_order"
        f" THEN UPDATE SET t.`na``me` = {taken}, t.`_cdc_deleted` = true, t.`_cdc_order` = s._cdc_order",
        "WHEN NOT MATCHED AND s._cdc_op IN ('U') AND s._cdc_known IS NOT NULL"
        " THEN INSERT (`id`) VALUES (CAST(raise_error('CDC_NO_ROW') AS BIGINT))",
        "WHEN NOT MATCHED AND s._cdc_op IN ('U', 'P') THEN INSERT (`id`, `na``me`, `_cdc_order`, `_cdc_deleted`)"
        " VALUES (s.`id`, s.`na``me`, s._cdc_order, false)",
    ]


def test_a_keyless_merge_compares_all_columns_and_floats_by_their_text() -> None:
    plan = MergePlan(TableSchema("public.t", (ID, RATE)), OnDelete.HARD)
    assert merged(plan).splitlines()[2:] == [
        "ON s._cdc_op = 'D' AND t.`id` <=> s.`id` AND CAST(t.`rate` AS STRING) <=> CAST(s.`rate` AS STRING)",
        "WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED AND s._cdc_op IN ('I') THEN INSERT (`id`, `rate`) VALUES (s.`id`, s.`rate`)",
    ]


def test_an_added_column_with_an_initial_value_fills_all_other_rows_and_drops_the_bounds() -> None:
    added = Column("n", LogicalType(Kind.INT32), initial="7")
    plan = MergePlan(TableSchema("public.t", (ID, added), ("id",)), OnDelete.HARD, added=(added,), ranges=(("1", "2"),))
    lines = merged(plan).splitlines()
    assert lines[2] == "ON t.`id` = s.`id`"
    assert lines[-1] == "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.`n` = CAST('7' AS INT)"


def test_a_late_truncate_leaves_rows_of_later_changes_which_get_the_initial_value_of_an_added_column() -> None:
    added = Column("n", LogicalType(Kind.INT32), initial="7")
    schema = TableSchema("public.t", (ID, added), ("id",))
    plan = MergePlan(schema, OnDelete.HARD, truncated=True, added=(added,), truncated_at="0a")
    assert merged(plan).splitlines()[-2:] == [
        "WHEN NOT MATCHED BY SOURCE AND coalesce(t._cdc_order, '') <= '0a' THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.`n` = CAST('7' AS INT)",
    ]


def test_a_repair_accepts_equal_order_keys_and_compares_a_nullable_key_null_safely() -> None:
    schema = TableSchema("public.t", (Column("k", LogicalType(Kind.TEXT)),), ("k",))
    text = merged(MergePlan(schema, OnDelete.HARD, not_older=True, ranges=(("'a'", "'b'"),)))
    assert "ON t.`k` <=> s.`k`\n" in text
    assert text.count("s._cdc_order >= coalesce(t._cdc_order, '')") == 2


def test_a_repair_of_soft_deletes_inserts_a_missing_row_as_deleted() -> None:
    plan = MergePlan(KEYED, OnDelete.SOFT, partial=True, not_older=True)
    assert merged(plan).splitlines()[-1] == (
        "WHEN NOT MATCHED AND s._cdc_op IN ('D') AND s._cdc_known IS NULL"
        " THEN INSERT (`id`, `na``me`, `_cdc_order`, `_cdc_deleted`) VALUES (s.`id`, s.`na``me`, s._cdc_order, true)"
    )


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, LogicalType(Kind.DATE), "CAST(NULL AS DATE)"),
        (True, LogicalType(Kind.BOOLEAN), "CAST('true' AS BOOLEAN)"),
        ("1.50", LogicalType(Kind.DECIMAL, 10, 2), "CAST('1.50' AS DECIMAL(10,2))"),
        ("it's \\n", LogicalType(Kind.TEXT), "'it\\'s \\\\n'"),
        ("AAE=", LogicalType(Kind.BYTES), "to_binary('AAE=', 'base64')"),
        ("2024-01-02T03:04:05Z", LogicalType(Kind.TIMESTAMPTZ), "CAST('2024-01-02T03:04:05Z' AS TIMESTAMP)"),
    ],
)
def test_literals_are_typed_and_quoted(value: object, kind: LogicalType, expected: str) -> None:
    assert literal(value, kind) == expected


def test_every_kind_has_a_column_type() -> None:
    assert all(column_type(LogicalType(kind, 5, 2)) for kind in Kind)


def test_ddl() -> None:
    assert add_columns("/l/t", [NAME, RATE]) == "ALTER TABLE delta.`/l/t` ADD COLUMNS (`na``me` STRING, `rate` DOUBLE)"
    assert register("main.shop", "t", "/l'x/t") == (
        "CREATE TABLE IF NOT EXISTS `main`.`shop`.`t` USING delta LOCATION '/l\\'x/t'"
    )
    assert quoted("a`b") == "`a``b`" and text_literal("a\\'b") == "'a\\\\\\'b'"


def test_statistics_are_kept_of_key_columns_and_of_columns_that_are_no_texts() -> None:
    assert statistics([("id", Kind.UUID), ("note", Kind.TEXT), ("on", Kind.DATE), ("raw", Kind.BYTES)], "id") == (
        {"delta.dataSkippingStatsColumns": "`id`,`on`"}
    )
    many = [(f"c{number}", Kind.INT64) for number in range(40)]
    assert statistics(many, "c39")["delta.dataSkippingStatsColumns"].split(",") == (
        ["`c39`", *(f"`c{number}`" for number in range(32))]
    )
    assert statistics([("note", Kind.TEXT), ("on", Kind.BOOLEAN)], "on") == {"delta.dataSkippingNumIndexedCols": "0"}


def statistics(columns: list[tuple[str, Kind]], layout: str) -> dict[str, str]:
    schema = TableSchema("t", tuple(Column(name, LogicalType(kind)) for name, kind in columns))
    properties = table_properties(schema, (layout, layout))
    return {name: text for name, text in properties.items() if "dataSkipping" in name}


def test_names_with_special_characters_use_column_mapping() -> None:
    odd = TableSchema("t", (Column("two words", LogicalType(Kind.TEXT)),))
    assert table_properties(odd, ())["delta.columnMapping.mode"] == "name"
