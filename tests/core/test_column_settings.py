"""Problems of `columns` with the tables of a source, names of targets, and columns that are withheld."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.definition import TableRule, rule_fingerprint
from airflow_cdc_provider.core.spec.selected_columns import selected_columns
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from tests.core.test_selection import codes, definition, run, table

ORDERS = TableSchema(
    "public.orders",
    (
        Column("id", LogicalType(Kind.INT32), False),
        Column("code", LogicalType(Kind.TEXT)),
        Column("at", LogicalType(Kind.TIMESTAMP)),
    ),
    ("id",),
)


def problems(schema: TableSchema = ORDERS, key: tuple[str, ...] = (), **settings: Any) -> list[str]:
    rule = TableRule("public.orders", columns=Columns(**settings), key=key)
    return [code for code, _ in codes(run([rule], [schema])[1])]


@pytest.mark.parametrize("field", ["hash", "mask", "truncate", "rename", "cast"])
def test_a_misspelled_column_is_a_problem_because_its_clear_value_would_be_copied(field: str) -> None:
    values: dict[str, Any] = {"hash": ("kode",), "mask": {"kode": 4}, "truncate": {"kode": 4}}
    assert problems(**{field: values.get(field, {"kode": "text"})}) == ["DEF042"]


def test_a_pattern_may_hash_a_column_that_only_some_tables_have() -> None:
    rule = TableRule("public.*", columns=Columns(hash=("note",)))
    selected, found = run([rule], [table("public.a"), table("public.b", "id")])
    assert (len(selected), found) == (2, ())
    assert codes(run([replace(rule, columns=Columns(hash=("nope",)))], [table("public.a")])[1]) == [
        ("DEF042", "public.*")
    ]


def test_a_cast_that_no_value_survives_is_a_problem() -> None:
    assert problems(cast={"at": "int64"}) == ["DEF057"]
    assert problems(cast={"at": "date"}) == []


def test_only_text_can_be_truncated() -> None:
    assert problems(truncate={"at": 4}) == ["DEF058"]
    assert problems(truncate={"at": 4}, cast={"at": "text"}) == problems(truncate={"code": 4}) == []


def test_two_keys_never_become_one() -> None:
    assert problems(key=("code",), mask={"code": 4}) == ["DEF059"]
    assert problems(key=("code",), truncate={"code": 4}) == ["DEF059"]
    assert problems(key=("code",), cast={"code": "int64"}) == ["DEF059"]
    assert problems(key=("code",), hash=("code",)) == problems(cast={"id": "int64"}, hash=("id",)) == []


def test_rows_that_are_identified_by_all_their_values_have_no_metadata_of_their_last_change() -> None:
    changed = (AddedColumn("at_source", metadata=Metadata.COMMIT_TIME),)
    constant = (AddedColumn("region", "eu"), AddedColumn("origin", metadata=Metadata.SOURCE_TABLE))
    keyless, deferred = replace(ORDERS, key=()), replace(ORDERS, regime=Regime.DOUBLE)
    assert problems(keyless, add=changed) == problems(deferred, add=changed) == ["DEF060"]
    assert problems(keyless, add=constant) == problems(deferred, add=constant) == problems(add=changed) == []


def test_names_that_the_settings_make_equal_are_a_problem() -> None:
    assert problems(rename={"code": "ID"}) == ["DEF025"]
    assert problems(add=(AddedColumn("Code", "x"),)) == ["DEF025"]
    assert problems(rename={"code": "at", "at": "code"}) == []


def test_the_key_and_the_order_of_a_target_have_the_names_of_the_copy() -> None:
    rule = TableRule("public.orders", columns=Columns(rename={"id": "no", "at": "time"}), cluster_by=("at",))
    task = run([rule], [ORDERS])[0]["public.orders"].task(TableState.PENDING)
    assert (task.schema.key, task.cluster_by) == (("no",), ("time",))


def test_the_fingerprint_changes_with_every_setting_and_with_the_key_of_hashes() -> None:
    def fingerprint(key_id: str = "a", **settings: Any) -> str:
        rule = TableRule("public.orders", columns=Columns(**settings))
        return rule_fingerprint(definition(rule), rule, key_id)

    settings: list[dict[str, Any]] = [
        {},
        {"hash": ("code",)},
        {"mask": {"code": 0}},
        {"truncate": {"code": 9}},
        {"rename": {"code": "c"}},
        {"cast": {"id": "int64"}},
        {"add": (AddedColumn("region", "eu"),)},
    ]
    assert len({fingerprint(**one) for one in settings}) == len(settings)
    assert fingerprint("a", hash=("code",)) != fingerprint("b", hash=("code",))
    assert fingerprint("a") == fingerprint("b")


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("{schema}_{table}", "sales.Orders", "sales_Orders"),
        ("raw_{table}", "sales.orders", "raw_orders"),
        ("{database}__{schema}__{table}", "shop.sales.orders", "shop__sales__orders"),
        ("{table}", "Account", "Account"),
        ("{table}", "sales.été-1", "_t__1"),
    ],
)
def test_placeholders_are_the_parts_of_the_source_name(target: str, source: str, expected: str) -> None:
    rule = TableRule("*", target=target)
    selected, found = run([rule], [table(source)])
    if expected.startswith("_"):
        assert codes(found) == [("DEF062", source)]
    else:
        assert selected[source].target == expected


def test_a_part_that_the_source_does_not_have_is_a_problem() -> None:
    assert codes(run([TableRule("*", target="{schema}_{table}")], [table("Account")])[1]) == [("DEF061", "Account")]


def test_two_tables_that_a_pattern_gives_one_name_are_both_left_out() -> None:
    selected, found = run([TableRule("*", target="{table}")], [table("a.orders"), table("b.Orders"), table("a.users")])
    assert list(selected) == ["a.users"]
    assert codes(found) == [("DEF015", "a.orders"), ("DEF015", "b.Orders")]


def control(schema: TableSchema) -> ControlRecord:
    return ControlRecord(
        "shop",
        schema.table,
        "log",
        "me",
        "a",
        1,
        1,
        "0",
        State(TableState.REPLICATING, "2026-01-01T00:00:00Z"),
        schema=schema,
    )


def sensitive(**settings: Any) -> TableRule:
    return TableRule("public.orders", columns=Columns(**settings), sensitive=True)


def test_a_new_column_of_a_sensitive_table_is_withheld_until_the_definition_names_it() -> None:
    with_new = replace(ORDERS, columns=(*ORDERS.columns, Column("ssn", LogicalType(Kind.TEXT))))
    for settings, withheld in (({}, ("ssn",)), ({"hash": ("ssn",)}, ()), ({"plain": ("ssn",)}, ())):
        selection = run([sensitive(**settings)], [with_new])[0]["public.orders"]
        disclosed = {column.name: column.id for column in ORDERS.columns}
        task = selection.task(TableState.REPLICATING, control(ORDERS), disclosed=disclosed)
        assert task.withheld == withheld
        assert ("ssn" in task.schema.names) is not bool(withheld)
        assert selection.task(TableState.PENDING).withheld == (), "a first copy has all columns"


def test_a_column_that_is_added_during_a_run_is_not_read_either() -> None:
    task = run([sensitive()], [ORDERS])[0]["public.orders"].task(TableState.PENDING)
    now = (*ORDERS.columns, Column("ssn", LogicalType(Kind.TEXT)))
    assert selected_columns(task.rule, now, ("id",)) == ORDERS.columns


def test_renamed_columns_of_a_sensitive_table_are_known() -> None:
    rule = sensitive(rename={"code": "c"})
    first = run([rule], [ORDERS])[0]["public.orders"].task(TableState.PENDING)
    later = run([rule], [ORDERS])[0]["public.orders"].task(TableState.REPLICATING, control(first.schema))
    assert (later.withheld, later.schema) == ((), first.schema)


def test_withholding_does_not_change_the_fingerprint() -> None:
    selection = run([sensitive()], [ORDERS])[0]["public.orders"]
    assert selection.task(TableState.PENDING).definition_sha256 == rule_fingerprint(
        definition(sensitive()), sensitive()
    )
