"""A first copy, and a new copy over an old one: rows are loaded into a shadow table, one transaction makes it the copy
in force, then it gets the table's name."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database.errors import value_rejected
from airflow_cdc_provider.targets.fencing import superseded_by
from airflow_cdc_provider.targets.spanner import control, mutations
from airflow_cdc_provider.targets.spanner.catalog import count_rows, find_tables
from airflow_cdc_provider.targets.spanner.changes import Verb
from airflow_cdc_provider.targets.spanner.columns import create_table, technical_columns
from airflow_cdc_provider.targets.spanner.control import ControlRow
from airflow_cdc_provider.targets.spanner.cuts import withdraw
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.encoding import encode_texts
from airflow_cdc_provider.targets.spanner.names import COPIED, COPY, PARTS, ROW, staging_table
from airflow_cdc_provider.targets.spanner.own_tables import create_own_tables
from airflow_cdc_provider.targets.spanner.rows import Stored, encode_column, hashes_of
from airflow_cdc_provider.targets.spanner.session import Session, Transaction
from airflow_cdc_provider.targets.spanner.sizes import PART_BYTES, bytes_of, split
from airflow_cdc_provider.targets.spanner.swap import drop
from airflow_cdc_provider.targets.spanner.values import text_value
from airflow_cdc_provider.targets.target import TargetState


def prepare(
    database: SpannerDatabase,
    target_table: str,
    schema: TableSchema,
    soft: bool,
    expected: TargetState,
    record: ControlRecord,
) -> Stored:
    """Create the shadow table. From now on only the commits of this copy and of newer attempts succeed: an earlier copy
    loses its shadow table. Raises Fenced if the table has changed."""

    def announce(transaction: Transaction) -> None:
        row = control.read(transaction.read, target_table)
        if expected.control is not None and (row.identity, row.record) != (expected.identity, expected.control):
            raise superseded_by(row.state, record)
        announced = ControlRow(row.identity, row.record, row.begun, record.nonce)
        transaction.write(control.write(target_table, announced))

    shadow = staging_table(target_table, COPIED, record.nonce)
    with database.session("prepare") as session:
        if not find_tables(session, target_table).has_own:
            database.change_schema(create_own_tables())
        session.transact(announce)
        orphans = [table.name for table in find_tables(session, target_table).staging()]
        drop(database, session, orphans)
        database.change_schema([create_table(shadow, schema, soft, database.options.json, record.nonce)])
    return Stored(shadow, schema, soft, database.options.json)


def load(session: Session, stored: Stored, part: int, batches: Iterable[pa.RecordBatch], most: int) -> int:
    """Load the rows of one part, and return their number. It may run twice: rows have the same keys then. ``batches``:
    with the technical columns. ``most``: mutations of one transaction."""
    loaded = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        counts = np.full(len(table), stored.width, np.int64)
        for start, end in split(counts, bytes_of(table), most, PART_BYTES):
            rows = table.slice(start, end - start)
            failpoint("load.before_commit")
            session.write([_upserts(stored, rows, part, loaded)])
            failpoint("load.after_commit")
            loaded += len(rows)
    return loaded


def commit_copy(database: SpannerDatabase, target_table: str, shadow: str, record: ControlRecord) -> None:
    """Make a loaded copy the copy in force. Raises Fenced, and Blocked if two rows have the same key."""

    def replace_copy(transaction: Transaction) -> None:
        row = control.read(transaction.read, target_table)
        if row.identity == record.nonce:
            return
        if row.loading != record.nonce:
            raise superseded_by(row.state, record)
        transaction.write(control.write(target_table, ControlRow(record.nonce, record)))
        transaction.write(mutations.delete(PARTS, mutations.prefixes([[text_value(target_table)]])))
        withdraw(transaction, record.replicator)
        failpoint("copy.before_swap")

    with database.session("copy") as session:
        found = count_rows(session, shadow)
        if found != record.rows:
            raise value_rejected(
                database.address,
                f"{record.rows} rows were loaded and {found} are in the table",
                "choose columns in tables.key that identify a row",
            )
        session.transact(replace_copy)


def _upserts(stored: Stored, rows: pa.Table, part: int, first: int) -> object:
    columns = [*stored.columns, *(technical_columns(stored.schema, stored.soft) if stored.schema.key else ())]
    values = {column.name: encode_column(rows, column) for column in columns}
    if not stored.schema.key:
        values[ROW] = encode_texts(hashes_of(rows, stored))
        values[COPY] = encode_texts(f"{part:06d}-{number:012d}" for number in range(first, first + len(rows)))
    return mutations.write_columns(Verb.UPSERT, stored.table, values)
