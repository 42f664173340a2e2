"""The database of the state store: the Airflow connection ``cdc_state``, else a SQLite file on this host."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import BaseHook, conf
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.postgres_access import libpq_parameters, tls_warnings
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.hooks.connections import connection_info
from airflow_cdc_provider.state.store import StateStore

CONNECTION = "cdc_state"
VARIABLE = "AIRFLOW_CONN_CDC_STATE"
SINGLE_HOST_EXECUTORS = frozenset({"LocalExecutor", "SequentialExecutor"})


def open_state() -> StateStore:
    """The state store of this Airflow installation. Raises CheckFailed: STA020 if tasks may run on several hosts and
    there is no connection ``cdc_state``, STA022 if Airflow cannot parse its environment variable, CON040 for an extra
    that is not allowed."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        if os.environ.get(VARIABLE):
            raise _unreadable() from None
        return StateStore(_file_url())
    try:
        url = make_url(connection.get_uri())
    except ArgumentError:
        return StateStore(connection.get_uri())  # its first use raises the error
    info, postgres = connection_info(CONNECTION), url.drivername.startswith("postgres")
    query = libpq_parameters(info) if postgres else allowed_options(info, frozenset())
    # SQLAlchemy's default driver for postgresql:// is psycopg2; this provider depends on psycopg 3.
    return StateStore(
        url.set(
            drivername="postgresql+psycopg" if postgres else url.drivername,
            query={name: str(value) for name, value in query.items()},
        ).render_as_string(hide_password=False)
    )


def state_tls_warnings() -> list[Problem]:
    """A warning if the connection ``cdc_state`` does not verify the server's TLS certificate. Opens no connection."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return []
    return tls_warnings(connection_info(CONNECTION)) if (connection.conn_type or "").startswith("postgres") else []


def _unreadable() -> CheckFailed:
    """Airflow reports a variable that it cannot parse as a missing connection."""
    return CheckFailed.of(
        "STA022",
        f"Airflow cannot parse the connection {CONNECTION}",
        where=f"environment variable {VARIABLE}",
        found="neither a URI nor the JSON form of a connection",
        do=f"export {VARIABLE}=postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or unset it",
        data="nothing was read or written; no other state store is used instead",
    )


def _file_url() -> str:
    executors = [name.split("=")[-1].split(":")[-1].split(".")[-1] for name in conf.get("core", "executor").split(",")]
    multi_host_executors = [name for name in executors if name.strip() not in SINGLE_HOST_EXECUTORS]
    if multi_host_executors:
        raise CheckFailed.of(
            "STA020",
            "tasks may run on several hosts, which requires a shared state store",
            where="[core] executor",
            found=", ".join(multi_host_executors),
            allowed=f"{', '.join(sorted(SINGLE_HOST_EXECUTORS))}, or a connection {CONNECTION}",
            do=f"airflow connections add {CONNECTION} --conn-uri postgresql://USER@HOST/DATABASE",
        )
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return f"sqlite:///{home}/cdc/state.db"
