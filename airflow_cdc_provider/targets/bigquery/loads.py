"""Files of rows → tables. Without a stage each file is uploaded by a load job of its own, whose id is made of the table
and the part, so a part that two tasks load is there once. With a stage, a single job loads the files that the driver
names."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow

from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.bigquery.client import library
from airflow_cdc_provider.targets.bigquery.jobs import Jobs
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.bigquery.rows import loadable
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.bigquery.storage import Stage
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.stage import ParquetRows

FILES_AT_ONCE = 10_000
"""The limit of the URIs of one load job."""


@dataclass(frozen=True)
class Loading:
    """The load of one table. ``stage``: None for uploads."""

    jobs: Jobs
    sql: BigQuerySql
    stage: Stage | None
    table: str
    schema: TableSchema

    @property
    def documents(self) -> list[str]:
        """The columns of type JSON: Parquet cannot be loaded into them."""
        columns = ((column, column.name in self.schema.key) for column in self.schema.columns)
        return [column.name for column, in_key in columns if self.sql.column_type(column, in_key) == "JSON"]

    @property
    def loaded_table(self) -> str:
        """The table that the files are loaded into."""
        return f"{self.table}_texts" if self.documents else self.table

    def write(self, part: int, batches: Iterable[pyarrow.RecordBatch]) -> LoadedPart:
        with tempfile.TemporaryDirectory(prefix="cdc-load-") as folder:
            path = Path(folder) / "rows.parquet"
            written = ParquetRows(path, (loadable(batch, self.sql, self.schema) for batch in batches))
            written.close()
            if self.stage:
                return LoadedPart(written.rows, self.stage.upload(self.table, part, path))
            return LoadedPart(self._upload(part, path, written.columns), self.loaded_table)

    def finish(self, columns: Sequence[str], files: Sequence[str]) -> None:
        """``files``: of the parts. Without a stage they are loaded already."""
        if self.stage:
            for start in range(0, len(files), FILES_AT_ONCE):
                self._load_files(files[start : start + FILES_AT_ONCE], list(map(column_name, columns)))
        if self.documents:
            self._parse_documents(columns)

    def _upload(self, part: int, path: Path, columns: Sequence[str]) -> int:
        """Returns the number of rows that are loaded."""

        def submit(job_id: str, config: Any) -> Any:
            with path.open("rb") as file:
                return self.jobs.client.load_table_from_file(
                    file, self._destination, job_id=job_id, job_config=config, size=path.stat().st_size
                )

        return int(self._load(submit, f"cdc-load-{self.table}-{part}", columns).output_rows)

    def _load_files(self, files: Sequence[str], columns: Sequence[str]) -> None:
        uris = [f"gs://{self.stage.bucket}/{name}" for name in files] if self.stage else []

        def submit(job_id: str, config: Any) -> Any:
            return self.jobs.client.load_table_from_uri(uris, self._destination, job_id=job_id, job_config=config)

        of_files = hashlib.sha256("\n".join(uris).encode()).hexdigest()[:12]
        self._load(submit, f"cdc-load-{self.table}-{of_files}", columns)

    def _load(self, submit: Any, job_id: str, columns: Sequence[str]) -> Any:
        """``columns``: of the files."""
        bigquery, table = library(), self.jobs.client.get_table(self._reference(self.table))
        schema = [
            bigquery.SchemaField(field.name, "STRING") if field.field_type == "JSON" else field
            for field in table.schema
            if field.name in columns
        ]
        return self.jobs.load(submit, job_id, schema, creates=bool(self.documents))

    def _parse_documents(self, columns: Sequence[str]) -> None:
        values = {name: self.sql.quoted(name) for name in columns}
        values |= {name: f"PARSE_JSON({self.sql.quoted(name)})" for name in self.documents}
        names, texts = ", ".join(map(self.sql.quoted, columns)), self.sql.table(self.loaded_table)
        insert = f"INSERT INTO {self.sql.table(self.table)} ({names}) SELECT {', '.join(values.values())} FROM {texts}"
        self.jobs.query(insert, f"cdc-parse-{self.table}")
        self.jobs.client.delete_table(self._reference(self.loaded_table), not_found_ok=True)

    @property
    def _destination(self) -> str:
        return self._reference(self.loaded_table)

    def _reference(self, table: str) -> str:
        return f"{self.sql.project}.{self.sql.dataset}.{table}"
