"""Redshift's stand-in: files in S3, COPY, then the pattern of Amazon's guide for rows that are updated, inserted and
deleted: DELETE of all rows with a new state, INSERT of those that have one. Its MERGE has no second action."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import redshift_connector

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.redshift import USER, EmbeddedRedshift
from tests.bench.warehouses.warehouse import COLUMNS, OP, SUMS, texts
from tests.buckets import ObjectStore

TYPES = {
    **dict.fromkeys(("id", "customer_id"), "BIGINT"),
    **dict.fromkeys(("total", "tax"), "DECIMAL(12,2)"),
    **dict.fromkeys(("status", "payload", "note"), "VARCHAR(65535)"),
    "rate": "DOUBLE PRECISION",
    "active": "BOOLEAN",
    "placed_at": "TIMESTAMP",
    "updated_at": "TIMESTAMP",
    "ship_on": "DATE",
    OP: "VARCHAR(1)",
}
LISTED = ", ".join(f'"{column}"' for column in COLUMNS)
UTC_TIME = '"placed_at"'


class Redshift:
    """COPY does not load times with a zone from Parquet."""

    def __init__(self, server: EmbeddedRedshift, store: ObjectStore) -> None:
        self.server = server
        self.bucket = store.LAKE
        self.connection, self.stage = server.connection, store.connection
        options = {"schema": "shop", "stage": f"s3://{store.LAKE}/stage", "stage_connection": "objects"}
        self.target = Target("redshift", connection="warehouse", options=options)
        self._behind(f"CREATE SCHEMA shop AUTHORIZATION {USER}")

    def copy(self, name: str) -> None:
        self._behind(
            f"CREATE TABLE shop.{name} AS SELECT {LISTED} FROM shop.items", f"ALTER TABLE shop.{name} OWNER TO {USER}"
        )

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        s3 = boto3.client(
            "s3",
            endpoint_url=self.stage.extra["endpoint_url"],
            aws_access_key_id=self.stage.login,
            aws_secret_access_key=self.stage.password,
            region_name="us-east-1",
        )
        entries = []
        for file in files:
            rows, content = pq.read_table(file, columns=[*COLUMNS, OP]), io.BytesIO()
            pq.write_table(rows.set_column(*self._naive(rows)), content)
            s3.put_object(Bucket=self.bucket, Key=f"hand/{file.name}", Body=content.getvalue())
            url = f"s3://{self.bucket}/hand/{file.name}"
            entries.append({"url": url, "mandatory": True, "meta": {"content_length": content.tell()}})
        manifest = json.dumps({"entries": entries}).encode()
        s3.put_object(Bucket=self.bucket, Key="hand/manifest", Body=manifest)
        columns = ", ".join(f'"{column}" {TYPES[column]}' for column in (*COLUMNS, OP))
        values = LISTED.replace(UTC_TIME, f"{UTC_TIME} AT TIME ZONE 'UTC'")
        table = f'"shop"."{name}"'
        self._execute(
            f'CREATE TABLE "shop"."changes" ({columns}) BACKUP NO DISTSTYLE KEY DISTKEY ("id") COMPOUND SORTKEY ("id")',
            f'COPY "shop"."changes" FROM \'s3://{self.bucket}/hand/manifest\' IAM_ROLE default'
            " FORMAT AS PARQUET MANIFEST",
            'ANALYZE "shop"."changes"',
            f'DELETE FROM {table} USING "shop"."changes" AS s WHERE {table}."id" = s."id"',
            f"""INSERT INTO {table} ({LISTED}) SELECT {values} FROM "shop"."changes" WHERE "{OP}" <> 'D'""",
            'DROP TABLE "shop"."changes"',
        )

    def sums(self, name: str) -> list[str]:
        return texts(self._behind("SET timezone TO 'UTC'", f"SELECT {SUMS} FROM shop.{name}")[0])

    def _naive(self, rows: pa.Table) -> tuple[int, str, pa.ChunkedArray]:
        number = rows.column_names.index("placed_at")
        return number, "placed_at", rows["placed_at"].cast(pa.timestamp("us"))

    def _execute(self, *statements: str) -> None:
        info = self.connection
        with redshift_connector.connect(
            host=info.host, port=info.port, database=info.schema, user=info.login, password=info.password, ssl=False
        ) as session:
            for statement in statements:
                session.cursor().execute(statement)
            session.commit()

    def _behind(self, *statements: str) -> list[Any]:
        """As a superuser of the PostgreSQL behind the stand-in."""
        with psycopg.connect(self.server.postgres.dsn(), autocommit=True) as session:
            cursor = session.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
