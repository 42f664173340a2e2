"""The queries and schema changes for Spanner, by GoogleSQL's own analyzer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.spanner import catalog
from airflow_cdc_provider.targets.spanner.columns import add_column, create_table
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.own_tables import create_own_tables
from tests.core.googlesql import Catalogue, parse_spanner_ddl

pytestmark = pytest.mark.nightly

TEXT = "STRING"
NAMES: dict[str, tuple[str, ...]] = {
    "tables": ("table_schema", "table_name", "table_type", "row_deletion_policy_expression"),
    "table_constraints": ("table_schema", "table_name", "constraint_name"),
    "columns": ("table_schema", "table_name", "column_name"),
    "indexes": ("table_schema", "table_name", "index_name", "index_type"),
    "table_privileges": ("table_schema", "table_name", "privilege_type", "grantee"),
    "database_options": ("option_name", "option_value"),
}
"""Of the information schema, by Spanner's documentation."""

TABLES = {("information_schema", table): dict.fromkeys(names, TEXT) for table, names in NAMES.items()}


@pytest.mark.parametrize("name", ["TABLES", "COLUMNS", "INDEXES", "PRIVILEGES", "DIALECT"])
def test_queries_of_the_catalog(name: str) -> None:
    Catalogue(TABLES).check(re.sub(r"@(\w+)", r"'\1'", getattr(catalog, name)))


EVERY_KIND = tuple(Column(f"c_{kind}", LogicalType(kind, *((20, 5) if kind is Kind.DECIMAL else ()))) for kind in Kind)
ODD_NAMES = tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("select", "Größe", "a b", 'quo"te', "1st", "na`me"))
ID = Column("id", LogicalType(Kind.INT64), nullable=False)


@dataclass(frozen=True)
class Answers:
    """A session with these results."""

    results: Mapping[str, Sequence[Sequence[Value]]]

    def query(self, sql: str, **_: str) -> Sequence[Sequence[Value]]:
        return self.results[sql]


@pytest.mark.parametrize("json", list(Json))
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("key", [(), ("id",), ("id", "a b")])
def test_the_tables_of_copies(key: tuple[str, ...], soft: bool, json: Json) -> None:
    schema = TableSchema("public.t", (ID, *EVERY_KIND, *ODD_NAMES), key)
    parse_spanner_ddl(create_table("t", schema, soft, json, "i" * 32))
    for column in schema.columns:
        parse_spanner_ddl(add_column("t", column, json, keyless=not key))


def test_our_own_tables() -> None:
    for statement in create_own_tables():
        parse_spanner_ddl(statement)


def test_a_replaced_copy_is_dropped_with_its_indexes() -> None:
    index = ListValue(values=[Value(string_value="by_v")])
    session = Answers({catalog.INDEXES: [index.values], catalog.PRIVILEGES: []})
    statements = catalog.drop_statements(session, ["cdc_replaced", "t"])  # type: ignore[arg-type]
    assert len(statements) == 4
    for statement in statements:
        parse_spanner_ddl(statement)


def test_a_count_of_rows() -> None:
    Catalogue({("t",): {"id": "INT64"}}).check("SELECT COUNT(*) FROM `t`")
    Catalogue({("t",): {"id": "INT64"}}).check("SELECT COUNT(`id`) FROM `t`")
