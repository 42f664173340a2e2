"""The reference model against hand-written cases, and against a reader of its records one after the other."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.change_records import ChangeRecord
from tests.model.change_records import KEYED, KEYLESS, ChangeRecordWriter
from tests.model.histories import COLUMNS, RandomHistories, random_histories
from tests.model.source import Change, Source


def moved(old: tuple[int, str], new: tuple[int, str]) -> Change:
    return Change("move", old, new)


CASES = {
    "a chain, then a delete": ([(0, "a")], [moved((0, "a"), (1, "a")), moved((1, "a"), (2, "a"))], [(2, "a")], []),
    "there and back": ([(0, "a")], [moved((0, "a"), (1, "a")), moved((1, "a"), (0, "b"))], [], [(0, "b")]),
    "a swap through a third key": (
        [(1, "x"), (2, "y")],
        [moved((1, "x"), (9, "x")), moved((2, "y"), (1, "y")), moved((9, "x"), (2, "x"))],
        [],
        [(1, "y"), (2, "x")],
    ),
    "a truncate in the middle": (
        [(1, "x")],
        [Change("insert", None, (2, "a")), Change("truncate"), Change("insert", None, (2, "b"))],
        [],
        [(2, "b")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_keyed_table_contains_the_rows_of_its_last_changes(case: str) -> None:
    start, changes, deleted, expected = CASES[case]
    source = Source(1, tuple(start))
    source.commit([*changes, *(Change("delete", row) for row in deleted)])
    assert source.state_at(1) == Counter(expected)
    assert source.state_at(0) == Counter(start)


def test_a_keyless_table_counts_equal_rows() -> None:
    source = Source(0, (("a",), ("a",)))
    source.commit([Change("insert", None, ("a",)), Change("delete", ("a",))])
    source.commit([Change("update", ("a",), ("b",))])
    assert source.state_at(1) == Counter({("a",): 2})
    assert source.state_at(2) == Counter({("a",): 1, ("b",): 1})
    assert source.kept(source.state_at(0), 0, 2) == Counter({("a",): 2, ("b",): 1})


def test_a_copy_without_deletes_keeps_every_row_as_last_written_however_the_log_is_cut() -> None:
    source = Source(1, ((1, "a"), (2, "b")))
    source.commit([moved((1, "a"), (3, "a")), Change("delete", (2, "b"))])
    source.commit([Change("truncate"), Change("insert", None, (2, "c"))])
    first = source.kept(source.state_at(0), 0, 1)
    assert first == Counter([(1, "a"), (2, "b"), (3, "a")])
    assert source.kept(first, 1, 2) == Counter([(1, "a"), (2, "c"), (3, "a")])
    assert source.kept(source.state_at(0), 0, 2) == source.kept(first, 1, 2)
    assert source.keys_between(0, 2) == {(1,), (2,), (3,)}


@pytest.mark.parametrize("changes", [[Change("delete", (1, "a"))], [Change("insert", None, (0, "b"))]])
def test_the_model_refuses_an_impossible_history(changes: list[Change]) -> None:
    source = Source(1, ((0, "a"),))
    source.commit(changes)
    with pytest.raises(AssertionError):
        source.state_at(1)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.booleans())
def test_records_read_one_after_the_other_give_every_state_of_the_source(random: Random, keyed: bool) -> None:
    made = random_histories(random.getrandbits(32), histories=3, windows=3, keyed=keyed)
    teller = ChangeRecordWriter(KEYED if keyed else KEYLESS)
    reader = Reader(made)
    transactions = [one for window in made.windows for one in window if one.changes]
    for position, one in enumerate(transactions, 1):
        for record in teller.records(one)[0]:
            reader.read(record)
        assert reader.rows() == made.source.state_at(position)


def test_a_history_run_alone_equals_its_run_among_others() -> None:
    together, alone = (random_histories("seed", 40, 4, keyed=True, only=only) for only in (None, 17))
    assert together.batches == alone.batches
    ours = {
        row: times for row, times in together.source.state_at(len(together.source.transactions)).items() if row[0] == 17
    }
    assert ours == alone.source.state_at(len(alone.source.transactions))


def test_random_histories_contain_every_kind_of_difficulty() -> None:
    made = [random_histories(f"kinds {number}", 60, 4, keyed=True) for number in range(3)]
    changes = [change for one in made for transaction in one.source.transactions for change in transaction]
    records = [records for one in made for window in one.windows for records in window]
    assert {change.op for change in changes} == {
        "insert", "update", "upsert", "replace", "delete", "move", "truncate"
    }  # fmt: skip
    assert any(change.known is not None and change.op == "move" for change in changes)
    assert any(change.new is not None and change.new[1] is None for change in changes)
    assert (
        any(one.twice for one in records)
        and any(one.later for one in records)
        and any(not one.changes for one in records)
    )
    assert any(2 in one.batches for one in made)
    keyless = random_histories("kinds", 60, 4, keyed=False)
    assert max(keyless.source.state_at(len(keyless.source.transactions)).values()) > 1


class Reader:
    """The simplest reader of change records: one after the other, into a dict or a bag."""

    def __init__(self, made: RandomHistories) -> None:
        self.keyed = bool(made.source.key)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in made.source.start]
        self.by_key = {json.dumps([row["h"], row["id"]], separators=(",", ":")): row for row in rows}
        self.bag = Counter(made.source.start)
        self.links: dict[str | None, dict[str, object]] = {}
        self.seen: set[str] = set()

    def rows(self) -> Counter[tuple[object, ...]]:
        return Counter(tuple(row.values()) for row in self.by_key.values()) if self.keyed else +self.bag

    def read(self, record: ChangeRecord) -> None:
        if record.event_id in self.seen:
            return
        self.seen.add(record.event_id)
        if record.op == "truncate":
            self.by_key.clear()
            self.bag.clear()
        elif self.keyed:
            self._keyed(record)
        else:
            self.bag[_values(record.before)] -= record.before is not None
            self.bag[_values(record.after)] += record.after is not None

    def _keyed(self, record: ChangeRecord) -> None:
        if record.op == "delete":
            self.links[record.link_id] = self.by_key.pop(str(record.key_before))
            return
        image = _image(record.after)
        empty: dict[str, object] = dict.fromkeys(COLUMNS)
        below = empty
        if record.link_id:
            below = self.links[record.link_id]
        elif record.op in ("update", "upsert"):
            below = self.by_key.get(str(record.key), empty)
        self.by_key[str(record.key)] = {name: image.get(name, below[name]) for name in COLUMNS}


def _image(text: str | None) -> dict[str, object]:
    image = json.loads(text or "{}")
    return image | ({"n": str(image["n"])} if image.get("n") is not None else {})


def _values(text: str | None) -> tuple[object, ...]:
    return tuple(_image(text).values())
