"""Mutations of one commit: first all are checked and applied to a draft, then the draft becomes the new versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import already_exists, failed_precondition, invalid, not_found
from airflow_cdc_provider.sandbox.spanner.keysets import ranges_of, stored_key
from airflow_cdc_provider.sandbox.spanner.schema import Schema, SpannerTable
from airflow_cdc_provider.sandbox.spanner.storage import Key, Range, Row, Rows
from airflow_cdc_provider.sandbox.spanner.values import stored


class Draft:
    """The changes of one commit. ``count``: of mutations, as Spanner documents it: each written column of a row, each
    deleted key or range, and each entry of an index of a changed row."""

    def __init__(self, schema: Schema, rows: Mapping[int, Rows], before: int, commit_time: str) -> None:
        self.changes: dict[tuple[int, Key], Row | None] = {}
        self.count = 0
        self.bytes = 0
        self._schema, self._rows, self._before, self._commit_time = schema, rows, before, commit_time

    def apply(self, mutations: Iterable[Any]) -> None:
        """Raises Refused."""
        for mutation in mutations:
            operation = mutation.WhichOneof("operation")
            if operation == "delete":
                self._delete(self._schema.table(mutation.delete.table), mutation.delete.key_set)
            elif operation in ("insert", "update", "insert_or_update", "replace"):
                self.bytes += mutation.ByteSize()
                self._write(operation, getattr(mutation, operation))
            else:
                raise invalid(f"unsupported mutation: {operation}")
        if self.count > limits.COMMIT_MUTATIONS:
            raise invalid(
                "The transaction contains too many mutations. Insert and update operations count with the multiplicity"
                f" of the number of columns they affect. Mutations: {self.count}, limit: {limits.COMMIT_MUTATIONS}."
            )
        if self.bytes > limits.COMMIT_BYTES:
            raise invalid(f"The transaction exceeds the maximum commit size: {self.bytes} bytes.")

    def _write(self, operation: str, write: Any) -> None:
        table = self._schema.table(write.table)
        columns = [table.column(name) for name in write.columns]
        names = [column.name for column in columns]
        for name in table.key:
            if table.column(name).name not in names:
                raise failed_precondition(f"A key column {name} must be given for table {table.name}.")
        keys = [column.name for column in table.key_columns]
        for values in write.values:
            if len(values.values) != len(columns):
                raise invalid(f"Mutation of table {table.name} has a wrong number of values.")
            given = {
                column.name: stored(value, column, self._commit_time)
                for value, column in zip(values.values, columns, strict=True)
            }
            self._put(operation, table, stored_key(table, [given[name] for name in keys]), given)

    def _put(self, operation: str, table: SpannerTable, key: Key, given: Row) -> None:
        found = self._get(table, key)
        if operation == "insert" and found is not None:
            raise already_exists(f"Row {list(given.values())} in table {table.name} already exists")
        if operation == "update" and found is None:
            raise not_found(f"Row {list(given.values())} not found in table {table.name}.")
        kept = found if found is not None and operation in ("update", "insert_or_update") else {}
        row = {**kept, **given}
        for column in table.required_columns:
            if row.get(column.name) is None:
                raise failed_precondition(f"A new row in table {table.name} does not specify column {column.name}.")
        self.changes[table.number, key] = row
        self.count += len(given) + len(table.indexes)

    def _delete(self, table: SpannerTable, key_set: Any) -> None:
        for part in ranges_of(table, key_set):
            self.count += 1
            for key in {part.start} if part.is_key(len(table.key)) else self._keys_in(table, part):
                if self._get(table, key) is not None:
                    self.count += len(table.indexes)
                self.changes[table.number, key] = None

    def _keys_in(self, table: SpannerTable, part: Range) -> set[Key]:
        drafted = {key for number, key in self.changes if number == table.number and part.holds(key)}
        return drafted.union(key for key, _ in self._rows[table.number].scan(part, self._before))

    def _get(self, table: SpannerTable, key: Key) -> Row | None:
        if (table.number, key) in self.changes:
            return self.changes[table.number, key]
        return self._rows[table.number].get(key, self._before)
