"""The queries and schema changes for Spanner, by GoogleSQL's own analyzer."""

from __future__ import annotations

import re

import pytest

from airflow_cdc_provider.targets.spanner import catalog
from tests.core.googlesql import Catalogue

pytestmark = pytest.mark.nightly

TEXT = "STRING"
NAMES: dict[str, tuple[str, ...]] = {
    "tables": ("table_schema", "table_name", "table_type"),
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


def test_a_count_of_rows() -> None:
    Catalogue({("t",): {"id": "INT64"}}).check("SELECT COUNT(*) FROM `t`")
