"""The rows of a table, in parts that Spark's tasks fetch as pages: without a query, which would be paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow

from airflow_cdc_provider.targets.bigquery.jobs import request_retry
from airflow_cdc_provider.targets.bigquery.rows import readable

if TYPE_CHECKING:
    from airflow_cdc_provider.targets.bigquery.server import BigQueryServer

PART_ROWS = 100_000


@dataclass(frozen=True)
class TablePart:
    """``count`` rows from ``start`` on. ``columns``: their names → names in BigQuery. Pickled and sent to a task."""

    server: BigQueryServer
    table: str
    columns: Mapping[str, str]
    start: int
    count: int

    def to_arrow(self) -> pyarrow.Table:
        with self.server.session("read") as connection:
            client = connection.jobs.client
            table = client.get_table(self.table, retry=request_retry())
            fields = {field.name: field for field in table.schema}
            selected = [fields[name] for name in self.columns.values()]
            rows = client.list_rows(
                table,
                selected_fields=selected,
                start_index=self.start,
                max_results=self.count,
                retry=request_retry(),
            )
            arrow = rows.to_arrow(create_bqstorage_client=False)
        return readable(arrow.select(list(self.columns.values())), list(self.columns))


def parts_of(server: BigQueryServer, table: Any, columns: Mapping[str, str]) -> list[TablePart]:
    """``columns``: as in the part. At least one part, which may be empty."""
    starts = range(0, table.num_rows or 1, PART_ROWS)
    name = f"{table.project}.{table.dataset_id}.{table.table_id}"
    return [TablePart(server, name, dict(columns), start, PART_ROWS) for start in starts]
