"""A window contains whole transactions of any size, and its files record that."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import Boundary, CutShort, Ignored, Resolved, StreamItem
from airflow_cdc_provider.core.errors import SourceUnavailable, StagingUnavailable
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.windows.record_files import RecordFile, record_batch
from spark_jobs.windows.window_writer import LandedSplit, Limits, WindowEnd, land_changes

TABLES = ("public.a", "public.b", "public.c")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOTHING: dict[str, TableSchema] = {}
SMALL = Limits(window_records=10**9, file_records=20, buffer_records=10, open_files=2)


def schema(table: str, *columns: str, kind: Kind = Kind.INT64) -> TableSchema:
    return TableSchema(table, tuple(Column(name, LogicalType(kind)) for name in columns), columns[:1])


def record(table: str, number: int, **more: object) -> ChangeRecord:
    plain = ChangeRecord(
        table,
        "insert",
        f"{number:050x}",
        "s",
        key=f"[{number}]",
        after=f'{{"id":{number}}}',
        after_complete=True,
        commit_ts=NOON + timedelta(seconds=number),
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def transaction(end: int, *records: ChangeRecord) -> list[StreamItem]:
    return [*records, Boundary({"slot": f"0/{end:X}"})]


def run(
    folder: Path, items: Iterable[StreamItem], limits: Limits = SMALL, known: dict[str, TableSchema] | None = NOTHING
) -> LandedSplit:
    store = LocalStore(str(folder))
    names = iter(range(10**6))
    return land_changes(
        items,
        TABLES,
        known,
        lambda table: RecordFile(store, f"{table}/{next(names)}.parquet"),
        lambda records: None,
        limits,
    )


def keys(folder: Path, landed: LandedSplit) -> dict[str, list[str]]:
    return {
        table: [key for one in files for key in pq.read_table(folder / one.file.path)["order_key"].to_pylist()]
        for table, files in landed.files.items()
        if files
    }


def packed(stream: Iterable[StreamItem]) -> Iterator[StreamItem]:
    """The same with blocks instead of consecutive records."""
    for table, some in groupby(stream, lambda one: one.table if isinstance(one, ChangeRecord) else None):
        items = list(some)
        records = [one for one in items if isinstance(one, ChangeRecord)]
        yield from [Block(table, record_batch(records))] if table else items


def test_every_field_of_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    full = ChangeRecord(
        "public.a", "update", "0f", "abc", "[1]", "[2]", '{"id":1}', '{"id":2}', True, False, ("x",), 1, "link",
        "row", "7", 8, NOON + timedelta(microseconds=1), '{"lsn":"0/1"}', "0f", "none", ("nan_lost",),
    )  # fmt: skip
    landed = run(tmp_path, transaction(1, full))
    (row,) = pq.read_table(tmp_path / landed.files["public.a"][0].file.path).to_pylist()
    assert list(row) == list(FIELDS)
    assert row == {name: list(value) if isinstance(value := getattr(full, name), tuple) else value for name in FIELDS}


@given(
    transactions=st.lists(st.lists(st.sampled_from(TABLES), max_size=40), max_size=12),
    tail=st.integers(0, 30),
    cap=st.integers(1, 120),
    in_blocks=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_window_is_a_run_of_whole_transactions(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[list[str]], tail: int, cap: int, in_blocks: bool
) -> None:
    folder = tmp_path_factory.mktemp("window")
    expected: dict[str, list[str]] = {}
    items: list[StreamItem] = []
    number, hi, total, cut = 0, None, 0, WindowEnd.LIMIT
    for end, tables in enumerate(transactions, start=1):
        for table in tables:
            number += 1
            items.append(record(table, number))
            if cut is WindowEnd.LIMIT:
                expected.setdefault(table, []).append(f"{number:050x}")
        items.append(Boundary({"slot": f"0/{end:X}"}))
        if cut is WindowEnd.LIMIT:
            hi, total = {"slot": f"0/{end:X}"}, total + len(tables)
            cut = WindowEnd.SIZE if total >= cap else WindowEnd.LIMIT
    items += [record(TABLES[0], number + 1 + extra) for extra in range(tail)]

    limits = Limits(window_records=cap, file_records=20, buffer_records=10, open_files=2)
    landed = run(folder, packed(items) if in_blocks else items, limits)

    assert keys(folder, landed) == expected
    assert (landed.hi, landed.records, landed.end) == (hi, total, cut)
    named = {one.file.path for files in landed.files.values() for one in files}
    assert named == {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}, "no file outside the list"


def test_the_manifest_entry_has_the_hash_and_the_size_of_the_file(tmp_path: Path) -> None:
    landed = run(tmp_path, transaction(1, *(record("public.a", number) for number in range(25))))
    for one in landed.files["public.a"]:
        content = (tmp_path / one.file.path).read_bytes()
        assert (one.file.bytes, one.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert pq.read_metadata(tmp_path / one.file.path).num_rows == one.file.rows
    assert sum(one.counts["insert"] for one in landed.files["public.a"]) == 25
    assert min(one.commit_ts_min for one in landed.files["public.a"] if one.commit_ts_min) == NOON
    assert max(one.commit_ts_max for one in landed.files["public.a"] if one.commit_ts_max) == NOON + timedelta(
        seconds=24
    )


def test_changes_of_other_tables_are_counted(tmp_path: Path) -> None:
    landed = run(tmp_path, [Ignored(2), *transaction(1, record("public.a", 1)), Ignored(3), Boundary({"slot": "0/2"})])
    assert (landed.ignored, landed.records) == (5, 1)


def test_a_window_of_changes_of_other_tables_ends_too(tmp_path: Path) -> None:
    items = [item for end in range(1, 10) for item in (Ignored(3, "other"), Boundary({"slot": f"0/{end}"}))]
    landed = run(tmp_path, [*items, Ignored(1)], replace(SMALL, window_ignored=10))
    assert (landed.end, landed.hi, landed.ignored) == (WindowEnd.SIZE, {"slot": "0/4"}, 12)


def test_a_window_that_a_reader_cuts_short_does_not_end_at_its_limit(tmp_path: Path) -> None:
    landed = run(tmp_path, [*transaction(1, record("public.a", 1)), record("public.a", 2), CutShort()])
    assert (landed.end, landed.hi, landed.records) == (WindowEnd.CUT_SHORT, {"slot": "0/1"}, 1)


def test_the_latest_resolved_time_of_each_channel_counts(tmp_path: Path) -> None:
    resolved = [
        Resolved("t/0", NOON),
        Resolved("t/1", NOON),
        Resolved("t/0", NOON + timedelta(1)),
        Resolved("t/0", NOON),
    ]
    landed = run(tmp_path, [*resolved, *transaction(1, record("public.a", 1))])
    assert landed.resolved == {"t/0": NOON + timedelta(1), "t/1": NOON}
    assert (landed.ignored, landed.records) == (4, 1)


def breaking_second() -> list[StreamItem]:
    before, after = schema("public.a", "id", "x"), schema("public.a", "id", "y")
    return [
        *transaction(1, record("public.b", 1)),
        Ignored(4),
        *(record("public.b", number) for number in range(2, 40)),
        before,
        record("public.a", 40),
        after,
        record("public.a", 41, op="schema"),
        Boundary({"slot": "0/2"}),
    ]


def test_a_breaking_schema_ends_the_window_before_its_transaction_and_leaves_no_file_of_it(tmp_path: Path) -> None:
    landed = run(tmp_path, breaking_second())
    assert (landed.end, landed.hi, landed.holes, landed.ignored) == (WindowEnd.SCHEMA, {"slot": "0/1"}, (), 0)
    assert keys(tmp_path, landed) == {"public.b": [f"{1:050x}"]}
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_a_breaking_schema_in_the_first_transaction_makes_a_window_of_its_own_with_a_hole(tmp_path: Path) -> None:
    items = breaking_second()[2:] + transaction(3, record("public.b", 50))
    landed = run(tmp_path, items, known={"public.a": schema("public.a", "id", "x")})
    (hole,) = landed.holes
    assert (landed.end, landed.hi) == (WindowEnd.SCHEMA, {"slot": "0/2"})
    assert (hole.kind, hole.table, hole.order_key, hole.position) == ("schema", "public.a", f"{41:050x}", landed.hi)
    assert "perhaps a rename" in hole.detail
    assert len(keys(tmp_path, landed)["public.b"]) == 38


def test_a_stream_without_transactions_may_send_schemas_in_any_order(tmp_path: Path) -> None:
    landed = run(tmp_path, breaking_second()[2:], known=None)
    assert (landed.end, landed.hi, landed.holes) == (WindowEnd.LIMIT, {"slot": "0/2"}, ())
    assert [one.names for one in landed.schemas] == [("id", "x"), ("id", "y")]


def test_an_added_column_does_not_end_the_window(tmp_path: Path) -> None:
    items = [
        *transaction(1, record("public.a", 1)),
        schema("public.a", "id", "x", "y"),
        *transaction(2, record("public.a", 2)),
    ]
    landed = run(tmp_path, items, known={"public.a": schema("public.a", "id", "x")})
    assert (landed.end, landed.records, landed.hi) == (WindowEnd.LIMIT, 2, {"slot": "0/2"})
    assert [one.names for one in landed.schemas] == [("id", "x", "y")]


def test_a_reader_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def items() -> Iterator[StreamItem]:
        yield from transaction(1, *(record("public.a", number) for number in range(25)))
        raise SourceUnavailable

    with pytest.raises(SourceUnavailable):
        run(tmp_path, items())
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_full_disk_is_named_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setenv(TOKEN, str(token))
    monkeypatch.setenv(ARMED, "extract.write=enospc@5")
    with pytest.raises(StagingUnavailable, match=os.strerror(errno.ENOSPC)) as caught:
        run(tmp_path, transaction(1, *(record("public.a", number) for number in range(50))))
    assert str(tmp_path) in caught.value.problems[0].where
    assert not list(tmp_path.rglob("*.parquet"))


def test_more_tables_than_open_files_are_allowed_get_files_each(tmp_path: Path) -> None:
    items = [
        item
        for end in range(1, 30)
        for item in transaction(end, *(record(t, end * 3 + n) for n, t in enumerate(TABLES)))
    ]
    landed = run(tmp_path, items, Limits(file_records=1000, buffer_records=10, open_files=2))
    assert {table: len(found) for table, found in keys(tmp_path, landed).items()} == dict.fromkeys(TABLES, 29)
    assert len(landed.files["public.a"]) > 1


MILLION = """
import re, sys
from pathlib import Path
from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.windows.window_writer import Limits, land_changes
from spark_jobs.windows.record_files import RecordFile, record_batch

def items():
    text = '{"note":"' + "x" * 150 + '"}'
    for number in range(1_000_000):
        yield ChangeRecord("public.a", "insert", f"{number:050x}", "s", key=f"[{number}]", after=text)
    yield Boundary({"slot": "0/1"})

names = iter(range(100))
store = LocalStore(sys.argv[1])
landed = land_changes(
    items(), ["public.a"], {}, lambda table: RecordFile(store, f"{next(names)}.parquet"), lambda records: None, Limits()
)
# Not getrusage: its peak counts what the parent held when this process began.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(landed.records, int(peak[1]) // 1024)
"""


def test_a_transaction_of_a_million_changes_passes_in_flat_memory(tmp_path: Path) -> None:
    """In a separate process, as memory that was used once is never returned."""
    done = subprocess.run([sys.executable, "-c", MILLION, str(tmp_path)], capture_output=True, text=True, check=True)
    records, peak_mib = map(int, done.stdout.split())
    assert records == 1_000_000
    assert peak_mib < 300


def overflow(table: str, number: int) -> ChangeRecord:
    return record(table, number, op="overflow", key=None, after=None)


def test_an_overflow_ends_the_window_behind_its_transaction_with_a_hole_of_its_table(tmp_path: Path) -> None:
    items = [
        *transaction(1, record("public.a", 1)),
        *transaction(2, record("public.b", 2), overflow("public.a", 3), overflow("public.a", 4), record("public.b", 5)),
        *transaction(3, record("public.b", 6)),
    ]
    landed = run(tmp_path, items)
    assert (landed.end, landed.hi, landed.records) == (WindowEnd.HOLE, {"slot": "0/2"}, 5)
    (hole,) = landed.holes
    assert (hole.kind, hole.table, hole.order_key, hole.position) == ("overflow", "public.a", f"{4:050x}", landed.hi)
    assert keys(tmp_path, landed)["public.b"] == [f"{2:050x}", f"{5:050x}"]


def test_an_overflow_of_a_transaction_that_did_not_end_is_left_to_the_next_window(tmp_path: Path) -> None:
    landed = run(tmp_path, [*transaction(1, record("public.a", 1)), overflow("public.a", 2)])
    assert (landed.end, landed.holes, landed.records) == (WindowEnd.LIMIT, (), 1)
