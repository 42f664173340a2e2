"""Finds all problems of server, slot, publication and tables, each with the statement that solves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.postgres.capacity import Capacity, capacity_problems, read_capacity
from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalog
from airflow_cdc_provider.connectors.sources.postgres.check_tables import table_problems
from airflow_cdc_provider.connectors.sources.postgres.client import NONE_FREE, PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.create_slots import PLUGIN
from airflow_cdc_provider.connectors.sources.postgres.options import PostgresOptions
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.refused import encoding_problems
from airflow_cdc_provider.connectors.sources.postgres.table_facts import read_publication, read_table_facts, typed_row
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable

OLDEST_VERSION = 140000

SERVER = """
SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level') AS wal_level,
       pg_is_in_recovery() AS standby, current_setting('server_encoding') AS encoding,
       r.rolname::text AS role,
       r.rolreplication OR r.rolsuper
         OR EXISTS (SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication' AND pg_has_role(m.oid, 'MEMBER'))
         AS may_replicate
FROM pg_roles r WHERE r.rolname = current_user
"""

SLOT = """
SELECT s.slot_type AS kind, s.plugin::text AS plugin, s.database::text AS database,
       s.database = current_database() AS in_this_database, coalesce(s.wal_status, 'lost') AS wal_status,
       coalesce(s.active_pid, 0) AS holder_pid, coalesce(a.application_name, '') AS holder
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
WHERE s.slot_name = %s
"""


@dataclass(frozen=True)
class ServerFacts:
    version: int
    wal_level: str
    standby: bool
    encoding: str
    role: str
    may_replicate: bool


@dataclass(frozen=True)
class SlotFacts:
    kind: str
    plugin: str | None
    database: str | None
    in_this_database: bool | None
    wal_status: str
    holder_pid: int
    holder: str


def find_problems(client: PostgresClient, options: PostgresOptions, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable if the server cannot be reached; a rejected login is one of the problems."""
    try:
        with client.session("check") as connection:
            server = typed_row(connection, ServerFacts, SERVER)
            assert server is not None
            capacity = read_capacity(connection, options.slot)
            slot = typed_row(connection, SlotFacts, SLOT, options.slot)
            publication = read_publication(connection, options.publication)
            names = [task.table for task in tables]
            facts = read_table_facts(connection, options.publication, names)
            catalog = read_catalog(connection, names).tables
    except CheckFailed as error:
        return list(error.problems)
    return [
        *server_problems(server, capacity, client.location),
        *stream_problems(client, server),
        *slot_problems(slot, options.slot, client),
        *table_problems(tables, facts, catalog, publication, options.publication, server.role, client.location),
    ]


def stream_problems(client: PostgresClient, server: ServerFacts) -> Iterator[Problem]:
    """Of a session as the stream needs it, which a pooler does not pass on. That none is free is a problem of the
    server's capacity."""
    if not server.may_replicate or server.standby:
        return
    try:
        with client.session("check", replication=True):
            pass
    except CheckFailed as error:
        yield from error.problems
    except SourceUnavailable as error:
        yield from (problem for problem in error.problems if problem.code != NONE_FREE)


def server_problems(server: ServerFacts, capacity: Capacity, location: str) -> Iterator[Problem]:
    if server.version < OLDEST_VERSION:
        yield Problem(
            "SRC012",
            "the server is too old",
            location,
            f"PostgreSQL {server.version // 10000}",
            f"PostgreSQL {OLDEST_VERSION // 10000} or newer",
            "upgrade the server",
        )
    if server.standby:
        yield Problem(
            "SRC024", "the server is a standby", location, "in recovery", "a primary", "connect to the primary"
        )
    if server.wal_level != "logical":
        yield Problem(
            "SRC001",
            "the WAL does not contain what logical decoding requires",
            location,
            f"wal_level = {server.wal_level}",
            "wal_level = logical",
            "ALTER SYSTEM SET wal_level = logical; then restart the server",
        )
    yield from encoding_problems(server.encoding, location)
    yield from capacity_problems(capacity, location)
    if not server.may_replicate:
        yield Problem(
            "SRC011",
            f"role {server.role} lacks REPLICATION, which reading the stream requires",
            location,
            "no REPLICATION attribute",
            do=f"ALTER ROLE {quoted(server.role)} REPLICATION;",
        )


def slot_problems(slot: SlotFacts | None, name: str, client: PostgresClient) -> Iterator[Problem]:
    if slot is None:
        return
    if slot.kind != "logical" or slot.plugin != PLUGIN or not slot.in_this_database:
        yield Problem(
            "SRC014",
            f"slot {name} belongs to another use",
            client.location,
            f"{slot.kind} slot, plugin {slot.plugin}, database {slot.database}",
            f"a logical slot of {PLUGIN} in this database",
            "name another slot: `slot: …` under `source`",
        )
        return
    if slot.wal_status == "lost":
        yield Problem(
            "SRC013",
            f"slot {name} is invalid: the server removed WAL that the slot requires",
            client.location,
            "wal_status = lost",
            do=f"SELECT pg_drop_replication_slot('{name}'); then airflow cdc resync {client.replicator}",
        )
    if slot.holder_pid and not slot.holder.startswith(client.session_prefix):
        yield Problem(
            "SRC015",
            f"slot {name} is in use by another program",
            client.location,
            f"process {slot.holder_pid} ({slot.holder or 'no application name'})",
            "a slot that no other program reads",
            f"SELECT pg_terminate_backend({slot.holder_pid}); or name another slot: `slot: …` under `source`",
        )
