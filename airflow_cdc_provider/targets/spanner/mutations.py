"""Changes of rows as mutations in protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.targets.spanner.changes import Verb
from airflow_cdc_provider.targets.spanner.encoding import KEYS, WRITTEN_ROWS, encode_rows
from airflow_cdc_provider.targets.spanner.protos import KeySet, Mutation


def write(verb: Verb, table: str, columns: Sequence[str], rows: Iterable[ListValue]) -> Any:
    """``rows``: the values of the columns, in order."""
    mutation = Mutation()
    written = getattr(mutation, verb)
    written.table = table
    written.columns.extend(columns)
    written.values.extend(rows)
    return mutation


def write_columns(verb: Verb, table: str, columns: Mapping[str, pa.Array]) -> Any:
    """``columns``: encoded, by name."""
    mutation = write(verb, table, list(columns), ())
    getattr(mutation, verb).MergeFromString(encode_rows(columns.values(), WRITTEN_ROWS))
    return mutation


def write_row(verb: Verb, table: str, row: Mapping[str, Value]) -> Any:
    return write(verb, table, list(row), [ListValue(values=row.values())])


def delete(table: str, keys: Any) -> Any:
    """``keys``: a key set."""
    mutation = Mutation()
    mutation.delete.table = table
    mutation.delete.key_set.CopyFrom(keys)
    return mutation


def keys(rows: Iterable[ListValue]) -> Any:
    """A key set of whole keys."""
    return KeySet(keys=rows)


def encoded_keys(columns: Iterable[pa.Array]) -> Any:
    """A key set of whole keys. ``columns``: encoded."""
    return KeySet.FromString(encode_rows(columns, KEYS))


def all_keys() -> Any:
    return KeySet(all_=True)


def prefixes(rows: Iterable[Sequence[Value]]) -> Any:
    """A key set of all keys that begin with one of these values."""
    found = KeySet()
    for row in rows:
        whole = ListValue(values=row)
        found.ranges.add(start_closed=whole, end_closed=whole)
    return found


def all_but(prefix: Sequence[Value], one: Value) -> list[Any]:
    """Key sets of all keys that begin with these values, without those that go on with ``one``."""
    whole, excepted = ListValue(values=prefix), ListValue(values=[*prefix, one])
    before, behind = KeySet(), KeySet()
    before.ranges.add(start_closed=whole, end_open=excepted)
    behind.ranges.add(start_open=excepted, end_closed=whole)
    return [before, behind]


def after(row: Sequence[Value] | None) -> Any:
    """A key set of all keys after this one; all keys if there is none."""
    if row is None:
        return all_keys()
    found = KeySet()
    found.ranges.add(start_open=ListValue(values=row), end_closed=ListValue())
    return found


def mutation_count(mutations: Iterable[Any]) -> int:
    """As Spanner counts them, without secondary indexes."""
    total = 0
    for mutation in mutations:
        operation = mutation.WhichOneof("operation")
        if operation == "delete":
            key_set = mutation.delete.key_set
            total += len(key_set.keys) + len(key_set.ranges) + key_set.all_
        else:
            written = getattr(mutation, operation)
            total += len(written.columns) * len(written.values)
    return total
