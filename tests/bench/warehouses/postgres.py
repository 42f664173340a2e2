"""PostgreSQL itself: COPY, DELETE, INSERT … ON CONFLICT."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
from pyarrow import csv

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.bench.warehouses.warehouse import COLUMNS, OP, SUMS, texts

LISTED = ", ".join(COLUMNS)


class Postgres:
    stage = ConnectionInfo()

    def __init__(self, server: EmbeddedPostgres, database: str) -> None:
        self.dsn = server.dsn(database)
        self.connection = ConnectionInfo(
            "warehouse", server.host, server.port, server.user, server.password, schema=database
        )
        self.target = Target("postgres", connection="warehouse", options={"schema": "shop"})
        with psycopg.connect(self.dsn, autocommit=True) as session:
            session.execute("CREATE SCHEMA shop")

    def copy(self, name: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as session:
            session.execute(f"CREATE TABLE shop.{name} AS SELECT {LISTED} FROM shop.items".encode())
            session.execute(f"ALTER TABLE shop.{name} ADD PRIMARY KEY (id)".encode())
            session.execute("ANALYZE")

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        sets = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS if column != "id")
        with psycopg.connect(self.dsn) as session:
            session.execute("SET timezone TO 'UTC'")
            session.execute(f"CREATE TEMP TABLE changes (LIKE shop.{name}, {OP} text)".encode())
            with session.cursor().copy(f"COPY changes ({LISTED}, {OP}) FROM STDIN (FORMAT csv)".encode()) as copy:
                for file in files:
                    text = io.BytesIO()
                    rows = pq.read_table(file, columns=[*COLUMNS, OP])
                    csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
                    copy.write(text.getbuffer())
            session.execute("ANALYZE changes")
            session.execute(f"DELETE FROM shop.{name} t USING changes s WHERE s.{OP} = 'D' AND t.id = s.id".encode())
            session.execute(
                f"INSERT INTO shop.{name} ({LISTED}) SELECT {LISTED} FROM changes WHERE {OP} <> 'D' "
                f"ON CONFLICT (id) DO UPDATE SET {sets}".encode()
            )

    def sums(self, name: str) -> list[str]:
        with psycopg.connect(self.dsn) as session:
            session.execute("SET timezone TO 'UTC'")
            return texts(session.execute(f"SELECT {SUMS} FROM shop.{name}".encode()).fetchone() or ())
