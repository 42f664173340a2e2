"""The published cut: for each replicator the time at which its tables can be read together.

The transaction that publishes it reads the control rows of all tables. So at its commit timestamp the tables are at
these cursors, and a read of that time returns them however far they have moved on, as long as the database keeps
versions.
"""

from __future__ import annotations

from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.targets.spanner import control, mutations
from airflow_cdc_provider.targets.spanner.changes import Verb
from airflow_cdc_provider.targets.spanner.names import CUT
from airflow_cdc_provider.targets.spanner.session import Transaction
from airflow_cdc_provider.targets.spanner.values import number_value, text_of, text_value

COMMIT_TIME = "spanner.commit_timestamp()"
"""Spanner replaces this value by the commit timestamp."""


def publish(cut: Cut, transaction: Transaction) -> None:
    """Nothing is published if a newer cut is there, or a table has moved on."""
    for (window,) in transaction.read(CUT, ["cut_window"], mutations.keys([_key(cut.replicator)])):
        if int(str(text_of(window))) > cut.window:
            return
    for table in cut.tables:
        row = control.read(transaction.read, table.target)
        if row.record is None or (row.identity, row.record.window, row.begun) != (table.identity, table.window, None):
            return
    names = ListValue(values=[text_value(table.target) for table in cut.tables])
    transaction.write(
        mutations.write_row(
            Verb.UPSERT,
            CUT,
            {
                "replicator": text_value(cut.replicator),
                "cut_window": number_value(cut.window),
                "cut_at": text_value(cut.at),
                "read_at": text_value(COMMIT_TIME),
                "tables": Value(list_value=names),
            },
        )
    )


def withdraw(transaction: Transaction, replicator: str) -> None:
    """A table that a new copy replaces cannot be read as of an earlier time under its name."""
    transaction.write(mutations.delete(CUT, mutations.keys([_key(replicator)])))


def _key(replicator: str) -> ListValue:
    return ListValue(values=[text_value(replicator)])
