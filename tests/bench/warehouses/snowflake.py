"""Snowflake's stand-in: PUT of the files to a stage, COPY, MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import snowflake.connector

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from tests.bench.warehouses.warehouse import COLUMNS, OP, SUMS, merge, texts

LIMIT_S = 600
"""The client repeats a request that fails inside the stand-in, for ever without a limit."""

LISTED = ", ".join(COLUMNS)
TYPES = {
    **dict.fromkeys(("id", "customer_id"), "NUMBER(19,0)"),
    **dict.fromkeys(("total", "tax"), "NUMBER(12,2)"),
    **dict.fromkeys(("status", "payload", "note", OP), "VARCHAR"),
    "rate": "FLOAT",
    "active": "BOOLEAN",
    "placed_at": "TIMESTAMP_TZ",
    "updated_at": "TIMESTAMP_NTZ",
    "ship_on": "DATE",
}


class Snowflake:
    stage = ConnectionInfo()

    def __init__(self, server: EmbeddedSnowflake) -> None:
        self.connection = server.connection
        self.target = Target("snowflake", connection="warehouse", options={"database": "SHOP", "schema": "COPIES"})
        with self._session(database=None, schema=None) as session:
            session.cursor().execute("CREATE DATABASE SHOP")
            session.cursor().execute("CREATE SCHEMA SHOP.COPIES")

    def copy(self, name: str) -> None:
        self._execute(f"CREATE TABLE {name} AS SELECT {LISTED} FROM ITEMS", f"CREATE STAGE FILES_OF_{name}")

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        staged = [*COLUMNS, OP]
        columns = ", ".join(f"{column} {TYPES[column]}" for column in staged)
        values = ", ".join(f"$1:{column}::{TYPES[column]}" for column in staged)
        stage, changes = f"@FILES_OF_{name}", "SHOP.COPIES.CHANGES"
        self._execute(
            f"CREATE TRANSIENT TABLE {changes} ({columns})",
            *(f"PUT 'file://{file}' {stage} AUTO_COMPRESS = FALSE" for file in files),
            f"COPY INTO {changes} ({', '.join(staged)}) FROM (SELECT {values} FROM {stage})"
            f" FILES = ({', '.join(repr(file.name) for file in files)}) FILE_FORMAT = (TYPE = PARQUET)",
            merge(name, changes),
            f"DROP TABLE {changes}",
        )

    def sums(self, name: str) -> list[str]:
        """The stand-in sums decimals as floats."""
        query = SUMS.replace("sum(total)", "sum((total * 100)::BIGINT)").replace("sum(tax)", "sum((tax * 100)::BIGINT)")
        rows, ids, customers, total, tax, *others = self._execute(f"SELECT {query} FROM {name}")[0]
        return texts((rows, int(ids), int(customers), Decimal(total) / 100, Decimal(tax) / 100, *others))

    def _execute(self, *statements: str) -> list[Any]:
        with self._session() as session:
            cursor = session.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def _session(self, **more: Any) -> Any:
        info = self.connection
        options = {"database": "SHOP", "schema": "COPIES", "network_timeout": LIMIT_S, **more, **info.extra}
        return snowflake.connector.connect(user=info.login, password=info.password, port=info.port, **options)
