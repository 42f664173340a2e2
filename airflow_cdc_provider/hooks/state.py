"""Which database holds the state store: the Airflow connection ``cdc_state``, else a SQLite file of this host."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import BaseHook, conf
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.postgres_access import libpq_parameters, unverified
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.hooks.connections import connection_info
from airflow_cdc_provider.state.store import StateStore

CONNECTION = "cdc_state"
VARIABLE = "AIRFLOW_CONN_CDC_STATE"
ONE_HOST = frozenset({"LocalExecutor", "SequentialExecutor"})


def open_state() -> StateStore:
    """The state store of this Airflow. Raises CheckFailed (STA020) where tasks may run on several hosts and no
    connection ``cdc_state`` says where they share one, STA022 where Airflow cannot read the variable that holds it,
    CON040 where it says what is not allowed."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        if os.environ.get(VARIABLE):
            raise _unread() from None
        return StateStore(_file_url())
    try:
        url = make_url(connection.get_uri())
    except ArgumentError:
        return StateStore(connection.get_uri())  # which says so when it is opened
    info, postgres = connection_info(CONNECTION), url.drivername.startswith("postgres")
    query = libpq_parameters(info) if postgres else allowed_options(info, frozenset())
    # SQLAlchemy's own choice of driver for a plain postgresql:// is psycopg2; psycopg 3 is what this provider brings.
    return StateStore(
        url.set(
            drivername="postgresql+psycopg" if postgres else url.drivername,
            query={name: str(value) for name, value in query.items()},
        ).render_as_string(hide_password=False)
    )


def unverified_state() -> list[Problem]:
    """How the connection ``cdc_state`` leads to its server without TLS being verified. Asks nobody."""
    try:
        found = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return []
    return unverified(connection_info(CONNECTION)) if (found.conn_type or "").startswith("postgres") else []


def _unread() -> CheckFailed:
    """Airflow reports a variable that it cannot read as a connection that it does not have."""
    return CheckFailed(
        Problem(
            "STA022",
            f"Airflow cannot read the connection {CONNECTION}",
            where=f"environment variable {VARIABLE}",
            found="neither a URL nor the JSON form of a connection",
            do=f"export {VARIABLE}=postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or unset it",
            data="nothing was read or written; no other state store is used in its place",
        )
    )


def _file_url() -> str:
    executors = [name.split("=")[-1].split(":")[-1].split(".")[-1] for name in conf.get("core", "executor").split(",")]
    elsewhere = [name for name in executors if name.strip() not in ONE_HOST]
    if elsewhere:
        raise CheckFailed(
            Problem(
                "STA020",
                "tasks may run on several hosts, and nothing says where they share a state store",
                where="[core] executor",
                found=", ".join(elsewhere),
                allowed=f"{', '.join(sorted(ONE_HOST))}, or a connection {CONNECTION}",
                do=f"airflow connections add {CONNECTION} --conn-uri postgresql://USER@HOST/DATABASE",
            )
        )
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return f"sqlite:///{home}/cdc/state.db"
