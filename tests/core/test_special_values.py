"""Values that a column of the source may contain and its copy cannot hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import (
    MYSQL,
    NONE,
    POSTGRESQL,
    SYSTEMS,
    Special,
    System,
    UnsupportedValues,
    may_hold,
    unsupported_values,
    unsupported_values_note,
)
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql

SOURCE = TableSchema(
    "shop.prices",
    (
        Column("item", LogicalType(Kind.TEXT), False, "varchar(300)"),
        Column("valid_from", LogicalType(Kind.TIMESTAMP), False),
        Column("valid_to", LogicalType(Kind.DATE)),
        Column("amount", LogicalType(Kind.DECIMAL, 10, 2)),
        Column("weight", LogicalType(Kind.FLOAT64)),
        Column("pieces", LogicalType(Kind.INT32)),
    ),
    ("item", "valid_from"),
)
BEYOND = frozenset({Special.INFINITE_TIME, Special.OTHER_YEAR})


def holds_all(column: Column, in_key: bool) -> frozenset[Special]:
    return NONE


def task(rule: TableRule) -> TableTask:
    return TableTask(SOURCE.table, "prices", selected_schema(rule, SOURCE), rule, "", TableState.PENDING)


PLAIN = TableRule(SOURCE.table)


def test_times_and_numbers_of_postgresql_may_exceed_every_target() -> None:
    found = unsupported_values(task(PLAIN), lambda column: may_hold(column, POSTGRESQL), holds_all)
    assert found == (
        UnsupportedValues("valid_from", BEYOND, True),
        UnsupportedValues("valid_to", BEYOND, False),
        UnsupportedValues("amount", frozenset({Special.NAN_DECIMAL}), False),
    )


def test_values_that_the_definition_casts_or_sets_to_null_are_supported() -> None:
    rule = replace(PLAIN, columns=Columns(cast={"valid_from": "text"}), on_unrepresentable=OnUnrepresentable.SET_NULL)
    assert unsupported_values(task(rule), lambda column: may_hold(column, POSTGRESQL), holds_all) == ()
    nulls = replace(PLAIN, on_unrepresentable=OnUnrepresentable.SET_NULL)
    left = unsupported_values(task(nulls), lambda column: may_hold(column, POSTGRESQL), holds_all)
    assert [one.column for one in left] == ["valid_from"]


def test_a_target_may_lack_more_values_than_the_logical_type() -> None:
    target = MysqlSql("shop").unsupported_values
    found = unsupported_values(task(PLAIN), lambda column: may_hold(column, POSTGRESQL), target)
    assert {one.column: one.values for one in found} == {
        "item": {Special.LONG_KEY},
        "valid_from": BEYOND,
        "valid_to": BEYOND,
        "amount": {Special.NAN_DECIMAL},
        "weight": {Special.NAN_FLOAT},
    }
    assert not MysqlSql("shop", Floats.TEXT).unsupported_values(SOURCE.column("weight"), False)


@pytest.mark.parametrize("native", ["varchar(255)", "VARCHAR(length=255)", "character varying(20)", "VARCHAR(20, 'C')"])
def test_a_key_of_a_declared_length_fits_into_an_index(native: str) -> None:
    assert not MysqlSql("shop").unsupported_values(replace(SOURCE.column("item"), native=native), True)


def test_a_target_without_the_zero_character_concerns_only_sources_that_have_it() -> None:
    target = PostgresSql("shop").unsupported_values
    of_mysql = unsupported_values(task(PLAIN), lambda column: may_hold(column, MYSQL), target)
    of_postgres = unsupported_values(task(PLAIN), lambda column: may_hold(column, POSTGRESQL), target)
    assert Special.ZERO_CHARACTER in {value for one in of_mysql for value in one.values}
    assert Special.ZERO_CHARACTER not in {value for one in of_postgres for value in one.values}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))
def test_whole_numbers_are_always_supported(system: System) -> None:
    assert may_hold(SOURCE.column("pieces"), system) == NONE


@pytest.mark.parametrize("in_key", [True, False], ids=["key", "other"])
@pytest.mark.parametrize("kind", [one for one in Kind if one is not Kind.UUID])
@pytest.mark.parametrize("sql", [PostgresSql("s"), MysqlSql("s"), MysqlSql("s", Floats.TEXT)], ids=["pg", "my", "text"])
def test_a_target_lacks_values_if_and_only_if_it_has_a_condition_that_refuses_them(
    sql: Sql, kind: Kind, in_key: bool
) -> None:
    column = Column("c", LogicalType(kind, 10, 2) if kind is Kind.DECIMAL else LogicalType(kind))
    assert bool(sql.unsupported_values(column, in_key)) == bool(sql.restriction(column, in_key))


def test_the_note_contains_values_columns_and_the_yaml_to_write() -> None:
    rule = replace(PLAIN, columns=Columns(exclude=("weight",)))
    found = unsupported_values(
        task(rule), lambda column: may_hold(column, POSTGRESQL), MysqlSql("shop").unsupported_values
    )
    assert unsupported_values_note(SOURCE.table, found) == (
        "shop.prices stops at values that the copy cannot hold: keys longer than the index takes in item "
        "(key); infinite times in valid_from (key), valid_to; years before 1 or after 9999 in valid_from (key), "
        "valid_to; NaN in amount. `columns: {cast: {valid_from: text, valid_to: text, amount: text}}` copies them as "
        "text; `on_unrepresentable: set_null` writes NULL outside the key, and their text to another column; "
        "`on_bad_record: quarantine` moves records with such texts to quarantine"
    )
