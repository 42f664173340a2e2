"""BigQuery as a database server. It has no locks: a commit is a script with a compare-and-set, and of two transactions
that change one table, BigQuery cancels one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

import pyarrow

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.error_classes import STATEMENT
from airflow_cdc_provider.core.connections.google import google_account, google_endpoint, google_tls_warnings
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.bigquery import names
from airflow_cdc_provider.targets.bigquery.checks import dataset_problems, needed_grants
from airflow_cdc_provider.targets.bigquery.client import open_client, project_of
from airflow_cdc_provider.targets.bigquery.cursor import JobConnection, JobCursor
from airflow_cdc_provider.targets.bigquery.failures import JobFailed, problem_of
from airflow_cdc_provider.targets.bigquery.jobs import Jobs, request_retry
from airflow_cdc_provider.targets.bigquery.loads import Loading
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions
from airflow_cdc_provider.targets.bigquery.parts import parts_of
from airflow_cdc_provider.targets.bigquery.scripts import swap_job
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.bigquery.storage import stage_of
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.names import COPIED, staging_table

NAMES_OF_TYPES = {"integer": "int64", "float": "float64", "boolean": "bool"}
"""The API's names of types → those of statements."""


class BigQueryServer:
    swaps_under_lock: ClassVar[bool] = False
    alters_in_transactions: ClassVar[bool] = False
    limits: ClassVar[Limits] = Limits(names.LONGEST, True, columns=10_000)

    def __init__(self, info: ConnectionInfo, options: BigQueryOptions, replicator: str) -> None:
        self.info = info
        self.options = options
        self.replicator = replicator

    @cached_property
    def sql(self) -> BigQuerySql:
        options = self.options
        partitions = {one.table: one for one in options.partition_by}
        return BigQuerySql(self.project, options.dataset, options.json, partitions, options.labels)

    @cached_property
    def project(self) -> str:
        return project_of(self.info, self.options)

    @property
    def schema(self) -> str:
        return f"{self.project}.{self.options.dataset}"

    @property
    def address(self) -> str:
        return f"BigQuery{f' at {google_endpoint(self.info)}' if self.info.host else ''}, project {self.project}"

    def tls_warnings(self) -> list[Problem]:
        return google_tls_warnings(self.info)

    @contextmanager
    def session(self, purpose: str, window: int | None = None) -> Iterator[JobConnection]:
        exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
        auth = load_library("google.auth.exceptions", "target", "bigquery")
        requests = load_library("requests.exceptions", "target", "bigquery")
        labels = {"cdc_replicator": self.replicator, "cdc_purpose": purpose.replace(" ", "_"), **self.options.labels}
        labels |= {} if window is None else {"cdc_window": str(window)}
        try:
            client = open_client(self.info, self.options)
            try:
                yield JobConnection(Jobs(client, labels, self.options.maximum_bytes_billed))
            finally:
                client.close()
        except JobFailed as failed:
            raise problem_of(failed, self.address, self._grants_needed()) from failed
        except (auth.TransportError, requests.RequestException, exceptions.RetryError) as error:
            raise errors.unreachable(self.address, type(error).__name__) from error
        except auth.GoogleAuthError as error:
            raise errors.login_rejected(self.address, type(error).__name__, self.info.connection_id) from error
        except exceptions.GoogleAPICallError as error:
            raise self._translate(error) from error

    def comment(self, cursor: JobCursor, table: str) -> str | None:
        found = self._table(cursor, table)
        return None if found is None else str(found.description or "")

    def columns(self, cursor: JobCursor, table: str) -> list[str]:
        found = self._table(cursor, table)
        return [field.name for field in found.schema] if found is not None else []

    def view_query(self, cursor: JobCursor, view: str) -> str | None:
        found = self._table(cursor, view)
        return None if found is None else found.view_query

    def tables_like(self, cursor: JobCursor, prefix: str) -> list[str]:
        tables = cursor.jobs.client.list_tables(self.schema, page_size=1000, retry=request_retry())
        return [table.table_id for table in tables if table.table_id.startswith(prefix)]

    def other_collations(self, cursor: JobCursor, table: str) -> list[str]:
        found = self._described(cursor, table)
        return [] if found is None else collations_of(found.to_api_repr())

    def losses_of_rows(self, cursor: JobCursor, table: str) -> list[str]:
        both = [(name, self._described(cursor, name)) for name in (table, self.sql.control_table(table))]
        return [f"{name}: {one}" for name, found in both if found for one in expirations_of(found.to_api_repr())]

    def declared_types(self, cursor: JobCursor, table: str) -> Mapping[str, str]:
        found = self._table(cursor, table)
        fields = found.to_api_repr()["schema"]["fields"] if found is not None else []
        return {self.sql.column_id(field["name"]): type_of(field) for field in fields}

    def catalog_type(self, column: Column, in_key: bool) -> str:
        return self.sql.column_type(column, in_key).lower()

    def existing(self, cursor: JobCursor, tables: Collection[str]) -> Collection[str]:
        return set(self.tables_like(cursor, "")) & set(tables)

    def list_rows(self, cursor: JobCursor, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        found = self._table(cursor, table)
        if found is not None:
            fields = [field for field in found.schema if field.name in columns]
            for row in cursor.jobs.client.list_rows(found, selected_fields=fields, retry=request_retry()):
                yield tuple(row[name] for name in columns)

    def settle_swaps(self, cursor: JobCursor, target_table: str, identities: Iterable[str]) -> None:
        """Wait until the copies with these identities have the name of their table, or never get it."""
        for identity in identities:
            cursor.jobs.wait_for_all(swap_job(staging_table(target_table, COPIED, identity)))

    def lock_table(self, cursor: JobCursor, target_table: str) -> None:
        """No lock is needed: a commit compares and sets."""

    def lock_cut(self, cursor: JobCursor, replicator: str) -> None:
        """No lock is needed: of two transactions BigQuery cancels one."""

    def lock_own_tables(self, cursor: JobCursor) -> None:
        """No lock is needed: CREATE … IF NOT EXISTS is atomic."""

    def index_and_analyze(
        self, cursor: JobCursor, table: str, index: Sequence[str], unique: bool, constraint: str
    ) -> None:
        """BigQuery has no indexes, and keeps its statistics by itself."""

    def swap(self, connection: JobConnection, shadow: str, table: str, replaced: str, exists: bool) -> None:
        raise NotImplementedError("the target swaps by a script")

    def drop_if_unused(self, connection: JobConnection, table: str) -> bool:
        """Also waits for a job that copies the table, so that it has copied it, or cannot."""
        connection.jobs.client.delete_table(f"{self.schema}.{table}", not_found_ok=True, retry=request_retry())
        connection.jobs.wait_for_all(swap_job(table))
        if stage := stage_of(self.info, self.options.stage):
            stage.remove(table)
        return True

    def create_stage(self, cursor: JobCursor) -> None:
        """The bucket is there."""

    def write_file(
        self, table: str, schema: TableSchema, part: int, batches: Iterable[pyarrow.RecordBatch]
    ) -> LoadedPart:
        with self.session("load") as connection:
            return self._loading(connection, table, schema).write(part, batches)

    def load_files(
        self, table: str, schema: TableSchema, columns: Sequence[str], parts: Sequence[LoadedPart], window: int
    ) -> None:
        with self.session("load", window) as connection:
            self._loading(connection, table, schema).finish(columns, [part.file for part in parts])

    def table_parts(self, table: str, columns: Sequence[str]) -> Sequence[Any]:
        with self.session("read") as connection:
            found = connection.jobs.client.get_table(f"{self.schema}.{table}", retry=request_retry())
            paying = connection.jobs.client.project
            return parts_of(self, paying, found, {name: names.column_name(name) for name in columns})

    def grants(self, cursor: JobCursor, table: str) -> list[str]:
        """The roles that are granted on a table itself, as statements."""
        policy = cursor.jobs.client.get_iam_policy(f"{self.schema}.{table}", retry=request_retry())
        return [
            f"GRANT {names.quoted(binding['role'])} ON TABLE {self.sql.table(table)} TO {listed}"
            for binding in policy.bindings
            if not binding.get("condition")
            and (listed := ", ".join(f'"{member}"' for member in sorted(binding["members"])))
        ]

    def labels(self, cursor: JobCursor, table: str) -> dict[str, str]:
        found = self._table(cursor, table)
        return dict(found.labels) if found is not None else {}

    def arranged_by(self, cursor: JobCursor, table: str) -> set[str]:
        """The columns by which the table is clustered or partitioned."""
        found = self._table(cursor, table)
        if found is None:
            return set()
        partitioning = (found.time_partitioning, found.range_partitioning)
        return {*(found.clustering_fields or ()), *(one.field for one in partitioning if one and one.field)}

    def row_count(self, cursor: JobCursor, table: str) -> int | None:
        found = self._table(cursor, table)
        return None if found is None else found.num_rows

    def server_problems(self, cursor: JobCursor) -> Iterable[Problem]:
        client, has_partitions = cursor.jobs.client, bool(self.options.partition_by)
        yield from dataset_problems(client, self.schema, self.options.region, self.address, has_partitions)

    def _loading(self, connection: JobConnection, table: str, schema: TableSchema) -> Loading:
        stage = stage_of(self.info, self.options.stage)
        return Loading(connection.jobs, self.sql, stage, table, schema)

    def _described(self, cursor: JobCursor, table: str) -> Any | None:
        """The last description that this cursor has read, so that a state and its questions are of one."""
        return cursor.described[table] if table in cursor.described else self._table(cursor, table)

    def _table(self, cursor: JobCursor, table: str) -> Any | None:
        exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
        try:
            found = cursor.jobs.client.get_table(f"{self.schema}.{table}", retry=request_retry())
        except exceptions.NotFound:
            found = None
        cursor.described[table] = found
        return found

    def _translate(self, error: Any) -> CdcError:
        found = (error.errors or [{}])[0]
        reason = str(found.get("reason") or (error.code and error.code.phrase) or type(error).__name__)
        if reason.startswith("invalid"):  # of a request, which has no rows
            return errors.refused(self.address, f"{reason}: {found.get('message')}", STATEMENT)
        return problem_of(JobFailed(reason, str(found.get("message") or "")), self.address, self._grants_needed())

    def _grants_needed(self) -> str:
        paying = self.options.job_project or self.project
        return needed_grants(google_account(self.info), self.schema, paying, self.options.stage)


def collations_of(resource: Mapping[str, Any]) -> list[str]:
    """Of the columns of a table, and of those that it gets later, where that is not the comparison of characters."""
    fields = [(field["name"], field.get("collation")) for field in resource["schema"]["fields"]]
    listed = [*fields, ("new columns", resource.get("defaultCollation"))]
    return [f"{name} {collation}" for name, collation in listed if collation]


def type_of(field: Mapping[str, Any]) -> str:
    """The type of a column as in a statement, in lower case."""
    name = str(field["type"]).lower()
    digits = field.get("precision") and f"{field['precision']},{field.get('scale') or 0}"
    length = digits or field.get("maxLength")
    return f"{NAMES_OF_TYPES.get(name, name)}{f'({length})' if length else ''}"


def expirations_of(resource: Mapping[str, Any]) -> list[str]:
    """The options of a table after which it, or its partitions, are deleted."""
    found = {
        "expiration_timestamp": resource.get("expirationTime"),
        "partition_expiration_days": (resource.get("timePartitioning") or {}).get("expirationMs"),
    }
    return [option for option, value in found.items() if value is not None]
