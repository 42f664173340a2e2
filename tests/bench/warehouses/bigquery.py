"""BigQuery's stand-in: a load job for each file, one MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.bigquery import PROJECT, EmbeddedBigQuery
from tests.bench.warehouses.warehouse import COLUMNS, SUMS, merge, texts

DATASET = f"{PROJECT}.shop"


class BigQuery:
    stage = ConnectionInfo()

    def __init__(self, server: EmbeddedBigQuery) -> None:
        self.connection = server.connection
        self.target = Target("bigquery", connection="google_cloud", options={"project": PROJECT, "dataset": "shop"})
        self.client = bigquery.Client(
            PROJECT,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": server.url},  # type: ignore[no-untyped-call]
        )
        self._query(f"CREATE SCHEMA `{DATASET}`")

    def copy(self, name: str) -> None:
        self._query(f"CREATE TABLE `{DATASET}.{name}` AS SELECT {', '.join(COLUMNS)} FROM `{DATASET}.items`")

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        changes = f"{DATASET}.changes"
        fields = {field.name: field for field in self.client.get_table(f"{DATASET}.{name}").schema}
        schema = [fields.get(one, bigquery.SchemaField(one, "STRING")) for one in pq.read_schema(files[0]).names]
        self.client.create_table(bigquery.Table(changes, schema))
        config = bigquery.LoadJobConfig(source_format="PARQUET", schema=schema)
        for path in files:
            with path.open("rb") as file:
                self.client.load_table_from_file(file, changes, job_config=config).result()
        self._query(merge(f"`{DATASET}.{name}`", f"`{changes}`"))
        self.client.delete_table(changes)

    def sums(self, name: str) -> list[str]:
        (row,) = self._query(f"SELECT {SUMS} FROM `{DATASET}.{name}`")
        return texts(tuple(row.values()))

    def _query(self, statement: str) -> list[Any]:
        return list(self.client.query(statement).result())
