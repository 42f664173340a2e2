"""The tables of the state store and their migrations."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Float, Integer, String, Table, Text

from airflow_cdc_provider.core.errors import CheckFailed

metadata = sa.MetaData()

schema = Table("cdc_schema", metadata, Column("version", Integer, nullable=False), Column("owner", String(36)))

leases = Table(
    "cdc_lease",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("lane", String(20), primary_key=True),
    Column("holder", String(500), nullable=False),
    Column("expires", Float(53), nullable=False),
)

commands = Table(
    "cdc_command",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", String(36), unique=True, nullable=False),
    Column("replicator", String(250), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("tables", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("key", String(250), nullable=False),
    Column("requested_by", String(250), nullable=False),
    Column("requested_at", String(40), nullable=False),
    Column("status", String(20), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("finished_at", String(40), nullable=False),
    sa.UniqueConstraint("replicator", "key"),
)

attempts = Table(
    "cdc_attempt",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("replicator", String(250), nullable=False, index=True),
    Column("kind", String(20), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("task_id", String(250), nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("folder", Text, nullable=False),
    Column("tables", Text, nullable=False),
    Column("opened_at", String(40), nullable=False),
    Column("closed_at", String(40), nullable=False),
    Column("outcome", Text, nullable=False),
)

claims = Table(
    "cdc_claim",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("table", String(250), primary_key=True),
    Column("run_id", String(250), nullable=False),
    Column("sealed_window", Integer, nullable=False),
    Column("since", String(40), nullable=False),
)

table_rows = Table(
    "cdc_table",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("table", String(250), primary_key=True),
    Column("body", Text, nullable=False),
)

replicators = Table(
    "cdc_replicator",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("body", Text, nullable=False),
)

summaries = Table(
    "cdc_summary",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("body", Text, nullable=False),
)

positions = Table(
    "cdc_position",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("body", Text, nullable=False),
)

alerts = Table(
    "cdc_alert",
    metadata,
    Column("replicator", String(250), primary_key=True),
    Column("table", String(250), primary_key=True),
    Column("id", String(100), primary_key=True),
    Column("body", Text, nullable=False),
)

notices = Table(
    "cdc_notice",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("replicator", String(250), nullable=False, index=True),
    Column("body", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("delivered", Text, nullable=False),
)

KEPT_BY_RENAME = (commands, attempts, claims, table_rows, summaries, positions, alerts, notices)
OF_REPLICATOR = (leases, *KEPT_BY_RENAME)
"""The tables whose rows belong to one replicator and are removed with it."""

audit = Table(
    "cdc_audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", String(40), nullable=False),
    Column("replicator", String(250), nullable=False, index=True),
    Column("actor", String(250), nullable=False),
    Column("action", String(250), nullable=False),
    Column("detail", Text, nullable=False),
)


def _first(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(schema.insert().values(version=0, owner=str(uuid.uuid4())))


def _replicators(connection: Connection) -> None:
    replicators.create(connection, checkfirst=True)


def _summaries(connection: Connection) -> None:
    """Without rows: the next run of a replicator writes its own."""
    summaries.create(connection, checkfirst=True)


def _positions(connection: Connection) -> None:
    positions.create(connection, checkfirst=True)


def _alerts(connection: Connection) -> None:
    alerts.create(connection, checkfirst=True)
    notices.create(connection, checkfirst=True)


STEPS: Sequence[Callable[[Connection], None]] = (_first, _replicators, _summaries, _positions, _alerts)
"""Step n upgrades a store from version n to n + 1. Steps are only added, never changed."""


def upgrade(connection: Connection, steps: Sequence[Callable[[Connection], None]] = STEPS) -> None:
    """Upgrade the store to version ``len(steps)``. Raises CheckFailed (STA002) if its version is higher."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7234501)"))
    version = 0
    if sa.inspect(connection).has_table(schema.name):
        version = connection.execute(sa.select(schema.c.version)).scalar_one()
    if version > len(steps):
        raise CheckFailed.of(
            "STA002",
            "the state store was created by a newer version of airflow-cdc-provider",
            where=connection.engine.url.render_as_string(hide_password=True),
            found=f"schema version {version}",
            allowed=f"up to {len(steps)}",
            do="install the newer version here, too",
            data="nothing was changed",
        )
    for step in steps[version:]:
        step(connection)
    if version < len(steps):
        connection.execute(schema.update().values(version=len(steps)))
