"""A Spanner database: who logs in, its sessions, its schema, and its tables read in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_endpoint, google_login, google_tls_warnings
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.spanner.errors import translated
from airflow_cdc_provider.targets.spanner.options import SpannerOptions
from airflow_cdc_provider.targets.spanner.protos import types
from airflow_cdc_provider.targets.spanner.session import REQUEST_S, Row, Session, exceptions, rows_of, tag

SCHEMA_CHANGE_S = 3_600
CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@dataclass(frozen=True)
class Partition:
    """A part of a table as of one time, for any process."""

    session: str
    transaction: bytes
    token: bytes


@dataclass(frozen=True)
class SpannerDatabase:
    """Pickled and sent to Spark's executors with the tasks that write rows."""

    info: ConnectionInfo
    options: SpannerOptions
    replicator: str

    def __getstate__(self) -> dict[str, Any]:
        return {"info": self.info, "options": self.options, "replicator": self.replicator}

    @cached_property
    def credentials(self) -> tuple[Any, str]:
        return google_login(self.info, "spanner")

    @property
    def path(self) -> str:
        project = self.options.project or self.credentials[1]
        return f"projects/{project}/instances/{self.options.instance}/databases/{self.options.database}"

    @property
    def address(self) -> str:
        return f"Spanner database {self.options.instance}/{self.options.database}"

    @cached_property
    def client(self) -> Any:
        return self._client("google.cloud.spanner_v1.services.spanner", "SpannerClient", "SpannerGrpcTransport")

    @cached_property
    def admin(self) -> Any:
        module = "google.cloud.spanner_admin_database_v1.services.database_admin"
        return self._client(module, "DatabaseAdminClient", "DatabaseAdminGrpcTransport")

    def tls_warnings(self) -> list[Problem]:
        return google_tls_warnings(self.info)

    @contextmanager
    def session(self, purpose: str) -> Iterator[Session]:
        """``purpose``: part of the tag of its requests. Errors are raised as CdcError: TargetUnavailable if a retry can
        help, CheckFailed if a right is missing, Blocked if a value does not fit."""
        google = exceptions()
        with translated(self.address, self.info.connection_id):
            created = self.client.create_session(database=self.path, timeout=REQUEST_S)
            try:
                yield Session(self.client, created.name, tag(self.replicator, purpose), self.options.priority)
            finally:
                with suppress(google.GoogleAPICallError):  # Spanner deletes a session that is idle for an hour
                    self.client.delete_session(name=created.name, retry=None, timeout=REQUEST_S)

    def change_schema(self, statements: Sequence[str]) -> None:
        """One operation for all statements: each operation takes many seconds. A later statement is not executed if
        an earlier one fails."""
        with translated(self.address, self.info.connection_id):
            operation = self.admin.update_database_ddl(
                database=self.path, statements=list(statements), timeout=REQUEST_S
            )
            operation.result(timeout=SCHEMA_CHANGE_S)

    def partitions(self, table: str, columns: Sequence[str]) -> list[Partition]:
        """The whole table as of now, in parts. Several processes may read them in one multiplexed session, which
        Spanner removes by itself."""
        with translated(self.address, self.info.connection_id):
            request = types.CreateSessionRequest(database=self.path, session=types.Session(multiplexed=True))
            session = self.client.create_session(request=request, timeout=REQUEST_S).name
            options = types.TransactionOptions(read_only=types.TransactionOptions.ReadOnly(strong=True))
            found = self.client.partition_read(
                request=types.PartitionReadRequest(
                    session=session,
                    transaction=types.TransactionSelector(begin=options),
                    table=table,
                    columns=columns,
                    key_set=types.KeySet(all_=True),
                ),
                timeout=REQUEST_S,
            )
            return [Partition(session, found.transaction.id, part.partition_token) for part in found.partitions]

    def read_partition(self, part: Partition, table: str, columns: Sequence[str]) -> Iterator[Row]:
        with translated(self.address, self.info.connection_id):
            request = types.ReadRequest(
                session=part.session,
                transaction=types.TransactionSelector(id=part.transaction),
                table=table,
                columns=columns,
                key_set=types.KeySet(all_=True),
                partition_token=part.token,
            )
            yield from rows_of(self.client.streaming_read(request=request, timeout=REQUEST_S), len(columns))

    def _client(self, module: str, client: str, transport: str) -> Any:
        services = load_library(module, "target", "spanner")
        endpoint = google_endpoint(self.info).partition("://")[2] or None
        if self.tls_warnings():
            grpc = load_library("grpc", "target", "spanner")
            transports = load_library(f"{module}.transports", "target", "spanner")
            channel = grpc.insecure_channel(endpoint, options=CHANNEL_OPTIONS)
            return getattr(services, client)(transport=getattr(transports, transport)(channel=channel))
        return getattr(services, client)(
            credentials=self.credentials[0], client_options={"api_endpoint": endpoint} if endpoint else None
        )
