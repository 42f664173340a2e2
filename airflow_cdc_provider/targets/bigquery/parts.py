"""The rows of a table, in parts that Spark's tasks fetch: streams of the Storage Read API, which are of one moment, or
else pages. Neither is a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow

from airflow_cdc_provider.core.connections.google import google_login
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.bigquery.jobs import request_retry
from airflow_cdc_provider.targets.bigquery.rows import readable

if TYPE_CHECKING:
    from airflow_cdc_provider.targets.bigquery.server import BigQueryServer

PAGE_ROWS = 100_000


@dataclass(frozen=True)
class Stream:
    """``columns``: their names → names in BigQuery. ``session`` and ``stream``: of the Storage Read API. Pickled and
    sent to a task, like a page."""

    server: BigQueryServer
    columns: Mapping[str, str]
    session: bytes
    stream: str

    def to_arrow(self) -> pyarrow.Table:
        storage = load_library("google.cloud.bigquery_storage_v1.types", "target", "bigquery")
        session = storage.ReadSession.deserialize(self.session)
        schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(session.arrow_schema.serialized_schema))
        with self.server.session("read"):
            batches = [
                pyarrow.ipc.read_record_batch(
                    pyarrow.py_buffer(message.arrow_record_batch.serialized_record_batch), schema
                )
                for message in read_client(self.server).read_rows(self.stream)
            ]
        rows = pyarrow.Table.from_batches(batches, schema)
        return readable(rows.select(list(self.columns.values())), list(self.columns))


@dataclass(frozen=True)
class Page:
    """``count`` rows of a table from ``start`` on."""

    server: BigQueryServer
    columns: Mapping[str, str]
    table: str
    start: int
    count: int

    def to_arrow(self) -> pyarrow.Table:
        with self.server.session("read") as connection:
            client = connection.jobs.client
            table = client.get_table(self.table, retry=request_retry())
            fields = {field.name: field for field in table.schema}
            rows = client.list_rows(
                table,
                selected_fields=[fields[name] for name in self.columns.values()],
                start_index=self.start,
                max_results=self.count,
                retry=request_retry(),
            ).to_arrow(create_bqstorage_client=False)
        return readable(rows.select(list(self.columns.values())), list(self.columns))


def parts_of(server: BigQueryServer, paying: str, table: Any, columns: Mapping[str, str]) -> list[Stream] | list[Page]:
    """Pages where the account may not open streams, and where the connection has an endpoint, which is not that of the
    streams. ``paying``: the project that pays for the read."""
    exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
    if not server.info.host:
        try:
            return streams_of(server, paying, table, columns)
        except exceptions.PermissionDenied:
            pass
    name = f"{table.project}.{table.dataset_id}.{table.table_id}"
    return [Page(server, columns, name, start, PAGE_ROWS) for start in range(0, table.num_rows or 1, PAGE_ROWS)]


def streams_of(server: BigQueryServer, paying: str, table: Any, columns: Mapping[str, str]) -> list[Stream]:
    storage = load_library("google.cloud.bigquery_storage_v1.types", "target", "bigquery")
    wanted = storage.ReadSession(
        table=f"projects/{table.project}/datasets/{table.dataset_id}/tables/{table.table_id}",
        data_format=storage.DataFormat.ARROW,
        read_options=storage.ReadSession.TableReadOptions(selected_fields=list(columns.values())),
    )
    session = read_client(server).create_read_session(parent=f"projects/{paying}", read_session=wanted)
    text = storage.ReadSession.serialize(session)
    return [Stream(server, columns, text, stream.name) for stream in session.streams]


def read_client(server: BigQueryServer) -> Any:
    library = load_library("google.cloud.bigquery_storage_v1", "target", "bigquery")
    return library.BigQueryReadClient(credentials=google_login(server.info, "bigquery")[0])
