"""Every statement that the BigQuery target can emit is analyzed by GoogleSQL's own analyzer: merges of every kind, on
tables with odd names and all types, copies, fences, cuts, and our own tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.bigquery import scripts
from airflow_cdc_provider.targets.bigquery.bounds import bounds_condition, bounds_query
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.bigquery.options import Json, Partition, PartitionUnit
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.cuts import create_cut_table, create_view
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.database.names import CUT
from airflow_cdc_provider.targets.database.sql import (
    add_columns,
    column_list,
    create_control_table,
    staged_column_list,
)
from airflow_cdc_provider.targets.target import TargetState
from tests.core.googlesql import Catalogue, Columns

pytestmark = pytest.mark.nightly

SQL = BigQuerySql("my-project", "shop", json=Json.JSON, labels={"team": "x"})
COLUMN = re.compile(r"`(.*?)` (\w+)")

EVERY_KIND = tuple(Column(f"c_{kind}", LogicalType(kind, *((38, 20) if kind is Kind.DECIMAL else ()))) for kind in Kind)
ODD_NAMES = tuple(
    Column(name, LogicalType(Kind.TEXT))
    for name in ("t", "s", "_cdc_x", "record", "select", "Größe", "a b", 'quo"te', "it's", "row", "1st", "na`me", "x.y")
)
KEYS = {
    "one key": (Column("id", LogicalType(Kind.INT64), nullable=False),),
    "a key of every kind": tuple(
        replace(column, name=f"k_{column.name}", nullable=number % 2 == 0) for number, column in enumerate(EVERY_KIND)
    ),
    "no key": (),
}
ADDED = (
    Column("added", LogicalType(Kind.INT32), initial="7"),
    Column("blob", LogicalType(Kind.BYTES), initial='"AP8="'),
    Column("doc", LogicalType(Kind.JSON), initial='"{}"'),
    Column("number", LogicalType(Kind.DECIMAL, 38, 30), initial='"1.5"'),
    Column("at", LogicalType(Kind.TIMESTAMPTZ), initial='"2026-01-01T00:00:00.5Z"'),
    Column("none", LogicalType(Kind.DATE), initial="null"),
)
RECORD = ControlRecord(
    "shop", "public.t", "log", "me", "one", 3, 9, "f0", State(TableState.REPLICATING, "now"), nonce="n"
)
EXPECTED = TargetState(True, RECORD, None, "i" * 32, RECORD.token)


def schema_of(key: tuple[Column, ...], added: bool) -> TableSchema:
    columns = (*key, *EVERY_KIND, *ODD_NAMES, *(ADDED if added else ()))
    return TableSchema("public.t", columns, tuple(column.name for column in key))


def plans(key: tuple[Column, ...]) -> Iterator[MergePlan]:
    flags = product((False, True), repeat=4)
    for on_delete, (partial, truncated, not_older, added) in product(OnDelete, flags):
        if key or on_delete is not OnDelete.SOFT:
            schema = schema_of(key, added)
            yield MergePlan(schema, on_delete, partial, truncated, not_older, ADDED if added else ())


def columns_of(definitions: list[str]) -> Columns:
    return dict(found.groups() for definition in definitions if (found := COLUMN.match(definition)))  # type: ignore[misc]


def catalogue(schema: TableSchema, soft: bool) -> Catalogue:
    def path(name: str) -> tuple[str, ...]:
        return SQL.project, SQL.dataset, name

    control = columns_of(re.findall(r"`\w+` \w+", create_control_table(SQL, "t")[0].partition("(")[2]))
    cut = columns_of(re.findall(r"`\w+` \w+", create_cut_table(SQL)[0].partition("(")[2]))
    return Catalogue(
        {
            path("t"): columns_of(column_list(SQL, schema, soft)),
            path("staged"): columns_of(staged_column_list(SQL, schema)),
            path("shadow"): columns_of(column_list(SQL, schema, soft)),
            path(SQL.control_table("t")): control,
            path(CUT): cut,
        },
        ("_cdc_rows_deleted", "_cdc_rows_updated", "_cdc_rows_inserted"),
    )


@pytest.mark.parametrize("key", KEYS)
def test_merges_of_every_kind(key: str) -> None:
    known: dict[tuple[TableSchema, bool], Catalogue] = {}
    for plan in plans(KEYS[key]):
        bounds = "_cdc_t.`id` BETWEEN 1 AND 5" if key == "one key" else ""
        statements = merge_statements(SQL, SQL.table("t"), SQL.table("staged"), plan, bounds)
        commit = Commit("t", EXPECTED, replace(RECORD, nonce="m"), tuple(statements))
        tables = known.setdefault((plan.schema, plan.soft), catalogue(plan.schema, plan.soft))
        tables.check_script(scripts.commit_script(SQL, commit))


def test_a_fence_and_a_record_with_any_character() -> None:
    odd = replace(RECORD, attempt="it's \\ \n\t\x00 `%s` \u2028 €")
    catalogue(schema_of((), False), False).check_script(scripts.commit_script(SQL, Commit("t", EXPECTED, odd)))


@pytest.mark.parametrize("expected", [EXPECTED, TargetState(exists=False)], ids=["over a copy", "the first one"])
def test_a_copy_that_gets_the_name(expected: TargetState) -> None:
    options = SQL.table_options("cdc:1", {"team": "x"})
    grants = ['GRANT `roles/bigquery.dataViewer` ON TABLE `my-project`.`shop`.`t` TO "user:a@example.com"']
    swap = Swap("t", "shadow", expected, replace(RECORD, nonce="m"))
    catalogue(schema_of((), False), False).check_script(scripts.swap_script(SQL, swap, options, grants))


@pytest.mark.parametrize("tables", [0, 2])
def test_a_published_cut(tables: int) -> None:
    cut = Cut("shop", 9, "now", tuple(CutTable(f"t{number}", 9, "i") for number in range(tables)))
    known = catalogue(schema_of((), False), False)
    known.check_script(scripts.cut_script(SQL, cut))
    known.check(create_view(SQL, [SQL.control_table("t")]))


@pytest.mark.parametrize("key", KEYS)
def test_the_tables_and_the_ranges_of_keys(key: str) -> None:
    schema = schema_of(KEYS[key], added=False)
    known = catalogue(schema, True)
    by_month = Partition("public.t", "c_timestamp", PartitionUnit.MONTH)
    by_range = Partition("public.t", "c_int64", PartitionUnit.RANGE, 0, 100, 10)
    for partition in (None, by_month, by_range, Partition("public.t", "c_date")):
        sql = replace(SQL, partitions={partition.table: partition} if partition else {})
        layout = sql.layout(schema, ("c_int64", "Größe"))
        for statement in sql.create_table("new", column_list(sql, schema, True), "it's", staging=False, layout=layout):
            known.check(statement)
    created = SQL.create_table("new", staged_column_list(SQL, schema), "", staging=True)
    own = (*create_control_table(SQL, "t"), *create_cut_table(SQL))
    for statement in (*created, *add_columns(SQL, "t", ADDED), *own):
        known.check(statement)
    columns = [column for column in KEYS[key] if column.type.kind not in (Kind.BYTES, Kind.JSON)]
    if columns:
        known.check(bounds_query(SQL, SQL.table("staged"), columns))
        texts = {Kind.BOOLEAN: "true", Kind.DATE: "2026-01-01", Kind.UUID: "u", Kind.TEXT: "it's"}
        times = {Kind.TIMESTAMP: "2026-01-01T00:00:00", Kind.TIMESTAMPTZ: "2026-01-01 00:00:00+00"}
        found = [text for column in columns for text in [(texts | times).get(column.type.kind, "1")] * 2]
        condition = bounds_condition(SQL, columns, found)
        known.check(f"DELETE FROM {SQL.table('t')} AS _cdc_t WHERE {condition}")


def test_documents_are_parsed_by_the_database() -> None:
    known = Catalogue({("my-project", "shop", "a_texts"): {"j": "STRING"}, ("my-project", "shop", "a"): {"j": "JSON"}})
    known.check(f"INSERT INTO {SQL.table('a')} (`j`) SELECT PARSE_JSON(`j`) FROM {SQL.table('a_texts')}")
    assert column_name("j") == "j"
