"""A large batch in pieces by key."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.change_records import Operation
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.key_pieces import pieces_by_key

KEYS = st.sampled_from([None, "", *(f'["{n}"]' for n in range(9))])
RECORDS = st.tuples(st.sampled_from([Operation.UPDATE.value, Operation.DELETE.value]), KEYS, KEYS)


def entries(records: list[tuple[str, str | None, str | None]], number: int) -> pa.Table:
    rows = [
        {"op": op, "key_before": before, "key": key, "order_key": f"{number}-{n}"}
        for n, (op, before, key) in enumerate(records)
    ]
    return pa.Table.from_pylist(rows, ENTRIES)


def own_key(row: dict[str, str | None]) -> str | None:
    return row["key_before"] if row["op"] == Operation.DELETE.value else row["key"]


@given(st.lists(st.lists(RECORDS, max_size=8), max_size=4), st.integers(1, 5))
def test_all_records_of_a_key_are_in_one_piece(batches: list[list[tuple[str, str | None, str | None]]], n: int) -> None:
    tables = [entries(records, number) for number, records in enumerate(batches)]
    with pieces_by_key(tables, ENTRIES, n) as pieces:
        sizes = [piece.bytes > 0 for piece in pieces]
        found = [piece.read().to_pylist() for piece in pieces]
    assert sizes == [bool(rows) for rows in found]
    given_rows = [row for table in tables for row in table.to_pylist()]
    assert sorted((row for rows in found for row in rows), key=str) == sorted(given_rows, key=str)
    keys = [{own_key(row) or "" for row in rows} for rows in found]
    assert sum(map(len, keys)) == len(set().union(*keys))
