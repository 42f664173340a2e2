"""Removes from a database what belongs to a replicator."""

from __future__ import annotations

from google.protobuf.struct_pb2 import ListValue

from airflow_cdc_provider.targets.spanner import control, mutations
from airflow_cdc_provider.targets.spanner.catalog import find_tables
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.names import CONTROL, PARTS
from airflow_cdc_provider.targets.spanner.session import Transaction
from airflow_cdc_provider.targets.spanner.swap import drop
from airflow_cdc_provider.targets.spanner.values import text_value


def release(database: SpannerDatabase, replicator: str, target_table: str, identity: str | None) -> None:
    """The tables that all copies share stay, even if they are empty. ``identity``: only what belongs to this copy."""

    def delete_row(transaction: Transaction) -> bool:
        row = control.read(transaction.read, target_table)
        if row.record is None or row.record.replicator != replicator or identity not in (None, row.identity):
            return False
        key = [text_value(target_table)]
        transaction.write(
            mutations.delete(CONTROL, mutations.keys([ListValue(values=key)])),
            mutations.delete(PARTS, mutations.prefixes([key])),
        )
        return True

    with database.session("prepare") as session:
        tables = find_tables(session, target_table)
        if tables.has_own and session.transact(delete_row):
            drop(database, session, [table.name for table in tables.staging()])


def drop_copy(database: SpannerDatabase, target_table: str, identity: str) -> None:
    with database.session("prepare") as session:
        named = find_tables(session, target_table).named
        if named is not None and named.identity == identity:
            drop(database, session, [named.name])
