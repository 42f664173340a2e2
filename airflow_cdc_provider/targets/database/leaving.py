"""Removes from a database what belongs to a replicator, and gives its control rows to another one."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.cuts import create_view
from airflow_cdc_provider.targets.database.names import (
    CONTROL,
    CUT,
    PUBLISHED,
    copy_name,
    identity_in,
    staging_prefix,
)
from airflow_cdc_provider.targets.database.server import LocksTables, Server
from airflow_cdc_provider.targets.database.staging import drop


def release(server: Server, replicator: str, table: str, target_table: str, identity: str | None) -> None:
    """The tables that several copies share stay, even if they are empty. The comment by which a target
    table is known to be shared may be gone with it. ``identity``: only what belongs to this copy."""
    for shared in (False, True):
        _release(server, replicator, target_table, copy_name(target_table, table, shared), identity)


def _release(server: Server, replicator: str, target_table: str, name: str, identity: str | None) -> None:
    sql = server.sql
    with server.session("prepare") as connection:
        cursor = connection.cursor()
        if server.comment(cursor, sql.control_table(target_table)) is None:
            return
        connection.commit()
        server.lock_table(cursor, target_table)
        records = control.records(server, cursor, name)
        ours = [one for one, record in records.items() if record.replicator == replicator]
        own = [one for one in ours if identity in (None, one)]
        if own and own == ours:
            for orphan in server.tables_like(cursor, staging_prefix(name)):
                drop(server, connection, orphan)
        for command in control.delete(sql, name, own):
            command.execute(cursor)
        connection.commit()
        serves_one = name == target_table and sql.control_table(target_table) != CONTROL
        if serves_one and own == list(records) and not _has_next(server, cursor, target_table, identity):
            _drop_own_tables(server, cursor, target_table)
            connection.commit()


def _has_next(server: Server, cursor: Any, target_table: str, identity: str | None) -> bool:
    """Whether another copy than that of this identity has the name, or is on its way to it. Its control record may not
    be there yet."""
    if identity is None:
        return False
    found = server.comment(cursor, target_table)
    has_name = found is not None and identity_in(found) != identity
    return has_name or bool(server.tables_like(cursor, staging_prefix(target_table)))


def _drop_own_tables(server: Server, cursor: Any, target_table: str) -> None:
    """The tables that serve one copy. The view no longer reads them then."""
    sql, name = server.sql, server.sql.control_table(target_table)
    server.lock_own_tables(cursor)
    others = [one for one in server.tables_like(cursor, CONTROL) if one != name]
    cursor.execute(create_view(sql, others) if others else f"DROP VIEW IF EXISTS {sql.table(PUBLISHED)}")
    names = [name, *([server.lock_table_name(target_table)] if isinstance(server, LocksTables) else [])]
    for one in names:
        cursor.execute(f"DROP TABLE IF EXISTS {sql.table(one)}")


def drop_copy(server: Server, target_table: str, identity: str) -> None:
    with server.session("prepare") as connection:
        cursor = connection.cursor()
        found = server.comment(cursor, target_table)
        if found is not None and identity_in(found) == identity:
            cursor.execute(f"DROP TABLE {server.sql.table(target_table)}")
            connection.commit()


def delete_cut(server: Server, cursor: Any, replicator: str) -> None:
    """The caller holds the cut's lock."""
    sql = server.sql
    Command(f"DELETE FROM {sql.table(CUT)} WHERE {sql.quoted('replicator')} = %s", (replicator,)).execute(cursor)
