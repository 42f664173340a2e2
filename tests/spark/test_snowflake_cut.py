"""The published cut of several tables where each has a control table of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.names import PUBLISHED
from airflow_cdc_provider.targets.database.staging import prepare_staging
from airflow_cdc_provider.targets.snowflake.target import SnowflakeTarget

TABLES = ("orders", "customers")


def test_a_cut_of_several_tables_is_valid_until_one_of_them_moves(
    snowflake_server: EmbeddedSnowflake, tmp_path: Path
) -> None:
    options = {"database": "CUTS", "schema": "PUBLIC"}
    log = ChangeLog(LocalStore(str(tmp_path)))
    kind = Target("snowflake", options=options)
    target = SnowflakeTarget(kind, snowflake_server.connection, "shop", log, ConnectionInfo())
    record = ControlRecord("shop", "t", "log", "me", "one", 1, 3, "f0", State(TableState.REPLICATING, "now"), nonce="n")
    with target.server.session("create") as connection:
        connection.cursor().execute("CREATE DATABASE IF NOT EXISTS CUTS")
        connection.cursor().execute("CREATE SCHEMA IF NOT EXISTS CUTS.PUBLIC")
    for table in TABLES:
        prepare_staging(target.server, table)
        with target.server.session("commit") as connection:
            control.insert(target.sql, table, "id", record).execute(connection.cursor())
            connection.commit()
    target.publish_cut(Cut("shop", 3, "now", tuple(CutTable(table, 3, "id") for table in TABLES)))
    assert published(target) == [("shop", 3, 1)]
    with target.server.session("commit") as connection:
        advanced = control.advance(target.sql, "orders", "id", record, replace(record, window=4))
        assert advanced.execute(connection.cursor()) == 1
        connection.commit()
    assert published(target) == [("shop", 3, 0)]


def published(target: SnowflakeTarget) -> list[tuple[str, int, int]]:
    with target.server.session("read") as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT REPLICATOR, CUT_WINDOW, VALID FROM {target.sql.table(PUBLISHED)}")
        return [tuple(row) for row in cursor.fetchall()]
