"""Keys and unique indexes that a server lists and does not enforce. The catalogs of Oracle and SQL Server are tables of
SQLite here, which the same queries read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll import catalog as catalogs
from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, read_catalog
from airflow_cdc_provider.connectors.sources.jdbc_poll.unique_indexes import unenforced_keys, unique_indexes
from airflow_cdc_provider.connectors.sources.jdbc_poll.unique_keys import key_problem
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type
from tests.connectors.conftest import Database
from tests.connectors.test_jdbc_poll_zones_and_keys import of, problems

SQL_SERVER = """
ATTACH ':memory:' AS sys;
CREATE TABLE sys.schemas (schema_id, name);
CREATE TABLE sys.objects (object_id, schema_id, name);
CREATE TABLE sys.columns (object_id, column_id, name);
CREATE TABLE sys.indexes (object_id, index_id, is_primary_key, is_unique, has_filter, is_disabled, is_hypothetical);
CREATE TABLE sys.index_columns (object_id, index_id, column_id, key_ordinal);
INSERT INTO sys.schemas VALUES (1, 'dbo'), (2, 'other');
INSERT INTO sys.objects VALUES (1, 1, 'good'), (2, 1, 'off'), (3, 2, 'good');
INSERT INTO sys.columns VALUES (1, 1, 'id'), (1, 2, 'k'), (1, 3, 'half'), (1, 4, 'advised'), (1, 5, 'free'),
  (2, 1, 'id'), (3, 1, 'else');
INSERT INTO sys.indexes VALUES (1, 1, 1, 1, 0, 0, 0), (1, 2, 0, 1, 1, 0, 0), (1, 3, 0, 1, 0, 0, 1),
  (1, 4, 0, 1, 0, 1, 0), (1, 5, 0, 1, 0, 0, 0), (1, 6, 0, 0, 0, 0, 0), (2, 1, 1, 1, 0, 1, 0), (3, 1, 1, 1, 0, 0, 0);
INSERT INTO sys.index_columns VALUES (1, 1, 1, 1), (1, 2, 3, 1), (1, 3, 4, 1), (1, 4, 5, 1), (1, 5, 2, 1), (1, 5, 1, 2),
  (1, 5, 5, 0), (1, 6, 5, 1), (2, 1, 1, 1), (3, 1, 1, 1);
"""

ORACLE = """
CREATE TABLE all_constraints (owner, table_name, constraint_type, status, validated, index_owner, index_name);
CREATE TABLE all_indexes (owner, index_name, table_owner, table_name, uniqueness, status, index_type);
CREATE TABLE all_ind_columns (index_owner, index_name, column_name);
CREATE TABLE all_ind_partitions (index_owner, index_name, status);
CREATE TABLE all_ind_subpartitions (index_owner, index_name, status);
INSERT INTO all_constraints VALUES ('SHOP', 'GOOD', 'P', 'ENABLED', 'VALIDATED', NULL, 'PK'),
  ('SHOP', 'RELIED', 'P', 'DISABLED', 'NOT VALIDATED', NULL, NULL),
  ('SHOP', 'OLDER', 'P', 'ENABLED', 'NOT VALIDATED', NULL, 'OLD'),
  ('SHOP', 'LOADED', 'P', 'ENABLED', 'VALIDATED', 'SHOP', 'LOAD'),
  ('SHOP', 'PARTED', 'P', 'ENABLED', 'VALIDATED', 'SHOP', 'PART'),
  ('SHOP', 'GOOD', 'U', 'DISABLED', 'NOT VALIDATED', NULL, NULL), ('ELSE', 'THERE', 'P', 'DISABLED', '', NULL, NULL);
INSERT INTO all_indexes VALUES ('SHOP', 'PK', 'SHOP', 'GOOD', 'UNIQUE', 'VALID', 'NORMAL'),
  ('SHOP', 'SPLIT', 'SHOP', 'GOOD', 'UNIQUE', 'N/A', 'NORMAL'),
  ('SHOP', 'PLAIN', 'SHOP', 'GOOD', 'NONUNIQUE', 'VALID', 'NORMAL'),
  ('SHOP', 'UPPER', 'SHOP', 'GOOD', 'UNIQUE', 'VALID', 'FUNCTION-BASED NORMAL'),
  ('SHOP', 'LOAD', 'SHOP', 'LOADED', 'UNIQUE', 'UNUSABLE', 'NORMAL'),
  ('SHOP', 'PART', 'SHOP', 'PARTED', 'UNIQUE', 'N/A', 'NORMAL');
INSERT INTO all_ind_columns VALUES ('SHOP', 'PK', 'ID'), ('SHOP', 'SPLIT', 'K'), ('SHOP', 'SPLIT', 'Mixed'),
  ('SHOP', 'PLAIN', 'FREE'), ('SHOP', 'UPPER', 'SYS_NC00009$'), ('SHOP', 'LOAD', 'ID'), ('SHOP', 'PART', 'ID');
INSERT INTO all_ind_partitions VALUES ('SHOP', 'SPLIT', 'USABLE'), ('SHOP', 'PART', 'UNUSABLE');
"""


@contextmanager
def catalog(system: str, script: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.executescript(script)
        engine.dialect.name = system
        engine.dialect.requires_name_normalize = system == "oracle"
        yield connection


def test_a_disabled_or_filtered_index_of_sql_server_proves_nothing() -> None:
    with catalog("mssql", SQL_SERVER) as connection:
        assert unenforced_keys(connection, "dbo") == {"off"}
        assert (unenforced_keys(connection, "dbo", "off"), unenforced_keys(connection, "dbo", "good")) == (
            {"off"},
            set(),
        )
        assert set(unique_indexes(connection, "dbo", "good")) == {frozenset({"id"}), frozenset({"k", "id"})}
        assert set(unique_indexes(connection, "dbo", "off")) == set()


def test_a_key_of_oracle_that_is_not_enforced_for_each_row_proves_nothing() -> None:
    with catalog("oracle", ORACLE) as connection:
        assert unenforced_keys(connection, "shop") == {"relied", "older", "loaded", "parted"}
        assert [unenforced_keys(connection, "shop", name) for name in ("relied", "good")] == [{"relied"}, set()]
        assert set(unique_indexes(connection, "shop", "good")) == {frozenset({"id"}), frozenset({"k", "Mixed"})}
        assert set(unique_indexes(connection, "shop", "loaded")) == set()
        assert set(unique_indexes(connection, "shop", "parted")) == set()


def test_the_description_of_one_table_asks_for_its_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark tasks describe one table each, and the views of keys of a whole schema are slow in Oracle."""
    asked = list[str]()
    monkeypatch.setattr(catalogs, "unenforced_keys", lambda _, namespace, name: asked.append(name) or frozenset())
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        assert list(read_catalog(connection, ["main"], "main.t")) == ["main.t"]
        read_catalog(connection, ["main"])
    assert asked == ["t", ""]


@pytest.mark.parametrize("key", [("id",), ("id", "k")])
def test_an_unenforced_primary_key_needs_a_unique_index_beside_it(key: tuple[str, ...]) -> None:
    columns = tuple(Column(name, parse_type("int32")) for name in ("id", "k"))
    schema = TableSchema("dbo.off", columns, ("id",))
    table = PolledTable("dbo", "off", schema, {}, frozenset(), {}, unenforced_key=True)
    with catalog("mssql", SQL_SERVER) as connection:
        problem = key_problem(connection, table, replace(schema, key=key))
        assert problem and problem.code == "SRC063" and "primary key that the server does not enforce" in problem.found
        assert key_problem(connection, replace(table, name="good"), replace(schema, key=key)) is None


@pytest.mark.server
def test_a_primary_key_that_some_partitions_lack_proves_nothing(database: Database) -> None:
    database.sql(
        "CREATE TABLE p (id int NOT NULL, updated_at timestamptz NOT NULL) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "INSERT INTO p VALUES (1, now()), (1, now())",
        "ALTER TABLE ONLY p ADD PRIMARY KEY (id)",
        "CREATE INDEX ON p (updated_at)",
    )
    polling = of(database)
    assert problems(polling, "public.p") == ["SRC063"]
    assert polling.source.refused([polling.task("public.p")])["public.p"].code == "SRC063"
    database.sql("DELETE FROM p", "ALTER TABLE low ADD PRIMARY KEY (id)")
    database.sql("ALTER INDEX p_pkey ATTACH PARTITION low_pkey")
    polling = of(database)
    assert problems(polling, "public.p") == []
