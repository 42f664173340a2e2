"""Which changes are late, and what the applied changes of their rows mean for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.applied_order import AppliedOrder
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type
from spark_jobs.batches.late_schemas import unclear_changes
from spark_jobs.folds.later_changes import COLUMNS, LaterChanges, late_keys

NEWEST = "9"
Change = tuple[str, str, str | None, bool]
"""Operation, order key, key, and whether all columns are known."""


def records(changes: Iterable[Change]) -> pa.Table:
    rows = [
        {"op": op, "order_key": order, "key_before": key if op == "delete" else None, "after_complete": whole}
        | {"key": None if op == "delete" else key}
        for op, order, key, whole in changes
    ]
    types = {"after_complete": pa.bool_()}
    return pa.Table.from_pylist(rows, pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS]))


def fate(late: Change, *applied: Change, forgotten: str = "", ignore: bool = False, bad: Sequence[str] = ()) -> str:
    """Of a late change; empty if it is applied. ``bad``: the order keys of applied changes that are in quarantine."""
    later, arrived = LaterChanges(), records([late])
    later.add(records(applied), late_keys(arrived, NEWEST), {("[1]", order) for order in bad}, ignore, ignore)
    found = later.fates(arrived, NEWEST, forgotten)
    return "".join(name for name in ("repeated", "superseded", "unknown") if getattr(found, name)[0])


INSERT: Change = ("insert", "5", "[1]", True)
TRUNCATE: Change = ("truncate", "5", None, False)


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        ((), ""),
        ((("insert", "5", "[1]", True),), "repeated"),
        ((("delete", "7", "[1]", False),), "superseded"),
        ((("truncate", "7", None, False),), "superseded"),
        ((("update", "7", "[1]", True),), "superseded"),
        ((("replace", "7", "[1]", False),), "superseded"),
        ((("update", "7", "[1]", False),), "unknown"),
        ((("update", "7", "[1]", False), ("update", "6", "[1]", True)), "superseded"),
        ((("delete", "4", "[1]", False), ("truncate", "4", None, False), ("update", "4", "[1]", False)), ""),
        ((("delete", "7", "[2]", False), ("insert", "5", "[2]", True), ("update", "7", "[2]", False)), ""),
        ((("unreadable", "7", "[1]", False), ("schema", "7", None, False)), ""),
    ],
)
def test_a_late_change_depends_on_the_later_changes_of_its_row(applied: tuple[Change, ...], expected: str) -> None:
    assert fate(INSERT, *applied) == expected


def test_deletes_and_truncates_that_the_copy_ignores_supersede_nothing() -> None:
    assert fate(INSERT, ("delete", "7", "[1]", False), ("truncate", "7", None, False), ignore=True) == ""
    assert fate(INSERT, ("delete", "7", "[1]", False), ("update", "7", "[1]", True), ignore=True) == "superseded"


@pytest.mark.parametrize("op", ["update", "delete"])
def test_a_change_in_quarantine_supersedes_nothing(op: str) -> None:
    """It may be discarded, and then the late change has the values of the row."""
    assert fate(INSERT, (op, "7", "[1]", True), bad=["7"]) == "unknown"
    assert fate(INSERT, (op, "7", "[1]", True), ("update", "8", "[1]", True), bad=["7"]) == "superseded"
    assert fate(INSERT, INSERT, (op, "7", "[1]", True), bad=["5", "7"]) == "repeated"
    other = ("insert", "5", "[2]", True)
    assert fate(other, (op, "7", "[2]", True), bad=["7"]) == "superseded", "rows of a snapshot have one order key"
    assert fate(INSERT, ("delete", "7", "[1]", True), bad=["7"], ignore=True) == ""


def test_a_truncate_is_repeated_or_applied() -> None:
    assert fate(TRUNCATE, TRUNCATE) == fate(TRUNCATE, TRUNCATE, ignore=True) == "repeated"
    assert fate(TRUNCATE, ("truncate", "7", None, False), ("insert", "7", "[1]", True), forgotten="8") == ""


def test_what_the_log_has_forgotten_is_unknown_unless_it_shows_a_later_change() -> None:
    assert fate(INSERT, forgotten="4") == ""
    assert fate(INSERT, forgotten="5") == "unknown"
    assert fate(INSERT, ("delete", "7", "[1]", False), forgotten="8") == "superseded"


def test_changes_that_are_not_late_are_not_looked_at() -> None:
    newer = ("insert", "a", "[1]", True)
    assert fate(newer, newer, ("delete", "b", "[1]", False), forgotten="c") == ""
    assert late_keys(records([newer, INSERT, ("unreadable", "5", "[3]", False)]), NEWEST).to_pylist() == ["[1]"]


def order(window: int) -> str:
    return f"{epoch_prefix(1)}{window:032x}{0:016x}01"


def test_the_limit_of_what_the_log_has_forgotten_is_not_recent() -> None:
    retained, applied = 40, AppliedOrder(3)
    for cursor in range(3, 400):
        oldest = max(1, cursor - retained)
        applied = applied.after(cursor, order(cursor + 1), oldest)
        forgotten = applied.forgotten(oldest)
        if oldest <= 4:
            assert forgotten == "", "the log has all windows after the copy"
        else:
            assert order(oldest - 1) <= forgotten <= order(cursor - retained // 4)
        assert len(applied.marks) <= 7
    assert applied.newest == order(400)


def test_the_windows_with_later_changes_than_a_recent_one_are_few() -> None:
    applied = AppliedOrder(3)
    for cursor in range(3, 2000):
        applied = applied.after(cursor, order(cursor + 1), 1)
        for age in range(1, cursor - 3):
            window = applied.before(order(cursor - age))
            assert max(3, cursor - 4 * age - 4) <= window < cursor - age
            if age > 50:
                break
    assert applied.before(order(1)) == 3


def test_a_batch_without_changes_and_a_late_one_keep_the_newest_order_key() -> None:
    applied = AppliedOrder(1).after(1, order(9), 1).after(2, "", 1).after(3, order(4), 1)
    assert (applied.since, applied.newest) == (1, order(9))
    assert applied.after(4, "", 1) == applied


def test_a_copy_made_before_this_was_recorded_has_forgotten_what_its_log_lacks() -> None:
    applied = AppliedOrder().after(50, order(51), 20)
    assert applied.forgotten(20) == order(51)


@pytest.mark.parametrize(
    ("newest", "all_ordered"),
    [
        (order(7), True),
        (f"{epoch_prefix(1)}{0:032x}{7:016x}01", False),
        (f"{epoch_prefix(1)}{7:016x}01", False),
        ("", False),
    ],
)
def test_order_keys_of_offsets_alone_do_not_order_all_changes(newest: str, all_ordered: bool) -> None:
    assert AppliedOrder(0, newest).orders_all is all_ordered


def test_a_copy_without_changes_forgets_none_although_the_log_was_cleaned() -> None:
    applied = AppliedOrder(0).after(4999, order(105), 4000)
    assert applied.forgotten(4000) == "" and applied.forgotten(5100) == order(105)
    assert AppliedOrder().after(4999, order(105), 4000).forgotten(4000) == order(105), "a copy of a former version"


def schema(*columns: str, key: str = "int32", more: str = "text") -> TableSchema:
    """``columns`` without ids, beside the key."""
    named = [Column("id", parse_type(key), nullable=False), *(Column(name, parse_type(more)) for name in columns)]
    return TableSchema("t", tuple(named), ("id",))


@pytest.mark.parametrize(
    ("earlier", "later", "renamed", "unclear"),
    [
        (schema("v"), schema("v", "w"), {}, []),
        (schema("v", "w"), schema("v"), {}, []),
        (schema("v"), schema("n"), {"v": "n"}, []),
        (schema("v"), schema("n", "v"), {"v": "n"}, []),
        (schema("v", more="int32"), schema("v", more="int64"), {}, []),
        (schema("v", key="int32"), schema("v", key="int64"), {}, []),
        (schema("v", "n"), schema("n"), {"v": "n"}, ["v was renamed to n, and it had both"]),
        (schema("v"), schema("v", "c"), {"v": "n"}, ["v was renamed to n, and it is there again"]),
        (schema("v"), schema("c"), {"v": "n"}, []),
        (schema("v"), schema("v", "c"), {"v": "v", "n": "v"}, []),
        (schema("v"), schema("v", more="int32"), {}, ["column v changed from text to int32"]),
        (schema("v", key="date"), schema("v", key="timestamp"), {}, ["the key got a wider type"]),
    ],
)
def test_whether_the_columns_of_a_late_change_are_clear(
    earlier: TableSchema, later: TableSchema, renamed: dict[str, str], unclear: list[str]
) -> None:
    assert list(unclear_changes(earlier, later, renamed)) == unclear
