"""What one copy must hold: its source table, seen through the decisions that were made about this copy alone."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.programs.definitions import (
    CONSTANT,
    CONSTANT_VALUE,
    FILTERED_OUT,
    MASKED,
    NOT_COPIED,
    RENAMED,
    TRUNCATED,
)
from tests.programs.past_rows import Past
from tests.programs.program import POLL, Setup
from tests.programs.source import BAD_TIME, KEY, NUMBER, SECRET, TEXT, TIME, Column, Row, Table

HASH_KEY = "0123456789abcdef0123456789abcdef"
SHARD, SCHEMA_ONLY = "region", "schema_only"


def hashed(value: Any) -> str | None:
    return None if value is None else hmac.new(HASH_KEY.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def masked(value: Any) -> str:
    return f"****{value[-MASKED:]}" if len(value) >= 2 * MASKED else "****"


HIDDEN: dict[str, Callable[[Any], Any]] = {"hash": hashed, "mask": masked, "truncate": lambda value: value[:TRUNCATED]}


def text(value: Any) -> str | None:
    return None if value is None else str(value).removesuffix("+00:00")


@dataclass
class Copy:
    """``history``: none, scd2 or log. ``left_out``: columns that an operator has decided not to copy. ``set_values``:
    key → what an operator has put in place of a value. ``unknown``: keys whose rows an operator has discarded.
    ``kept``: keys whose rows an operator has kept although they left the source. ``decided``: records in quarantine
    about which a decision is final. ``nulls``: values that cannot be represented were once set to NULL. ``grounds``:
    what happened since the copy was last equal and may stop it. ``recounted``: how often a history was copied again
    while a renamed column looked like another one: each row may have a new version. ``paused``: by an operator, with
    the command ``pause``, which is empty once the table that was paused is lost. ``new``: what becomes of its table,
    which came under a pattern and has no copy yet; ``unwanted``: an operator does not want the copy. ``outside``: keys
    of rows that the last full copy left out, as long as they are not changed. ``hidden_otherwise``: rows that are kept
    may have values that the YAML hides in another way now, which an operator removes in the target. ``cast_otherwise``:
    a history in which the YAML casts a column otherwise now: an operator gives it another target. ``made_in``: the name
    of its target when it was first equal."""

    name: str
    target: str
    table: Table
    setup: Setup
    history: str = "none"
    left_out: set[int] = field(default_factory=set)
    set_values: dict[Any, dict[str, Any]] = field(default_factory=dict)
    unknown: set[Any] = field(default_factory=set)
    kept: set[Any] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)
    grounds: set[str] = field(default_factory=set)
    past: Past = field(default_factory=Past)
    recounted: int = 0
    nulls: bool = False
    paused: bool = False
    pause: str = ""
    copied_again: bool = False
    new: str = ""
    unwanted: bool = False
    outside: set[Any] = field(default_factory=set)
    hidden_otherwise: bool = False
    cast_otherwise: bool = False
    made_in: str = ""

    @property
    def is_under_other_name(self) -> bool:
        """Whether its target had another name when it was made."""
        return self.made_in not in ("", self.target)

    def wrote(self, key: Any) -> None:
        """The row was written at the source: what an operator decided about its former state has no effect."""
        self.set_values.pop(key, None)
        self.unknown.discard(key)
        self.kept.discard(key)
        self.outside.discard(key)

    def made(self) -> None:
        """All its rows were copied."""
        self.outside = {key for key in self.table.rows if self._leaves_out(self.table.named_row(key))}

    def differences(self, rows: Iterable[Mapping[str, Any]], waiting: set[Any]) -> Iterator[str]:
        """``rows``: of the target table. ``waiting``: keys of records in quarantine."""
        rows = [row for row in rows if not self.setup.shards or row[SHARD] == self.table.name]
        excused = waiting | self.unknown
        if self.history == "scd2":
            yield from self._version_faults(rows)
            yield from self.past.lost_versions(self.table, _by_key(rows), excused, self._wrong_values)
            rows = [row for row in rows if row["_cdc_is_current"]]
        elif self.history == "log":
            written = [row for row in rows if row["_cdc_operation"] not in ("truncate", "delete")]
            yield from self.past.lost_versions(self.table, _by_key(written), excused, self._wrong_values)
            rows = list(self._last_of_each(rows))
        marked = {row[KEY] for row in rows if row.get("_cdc_deleted")}
        live = [row for row in rows if not row.get("_cdc_deleted")]
        if len({row[KEY] for row in live}) < len(live):
            yield f"a key stands twice: {sorted(str(row[KEY]) for row in live)}"
        copied = {row[KEY]: row for row in live}
        truth = {key: self.table.named_row(key) for key in self.table.rows if self._selects(self.table.named_row(key))}
        if self.history != "log":
            kept = {row[KEY]: row for row in rows}
            yield from self.past.lost_rows(self.table, self.setup, kept, excused, self._wrong_values)
        for key in sorted((copied.keys() | truth.keys()) - excused, key=str):
            if key not in truth:
                if not (self._keeps_rows or key in self.kept):
                    yield f"{key!r} is not in the source: {_shown(copied[key])}"
            elif key not in copied:
                if key not in self.outside:
                    yield f"{key!r} is missing{' (marked as deleted)' if key in marked else ''}: {truth[key]}"
            else:
                yield from self._wrong_values(key, truth[key], copied[key])

    def needlessly(self, waiting: set[Any]) -> set[Any]:
        """Keys of records in quarantine whose rows can be represented now. In a history every change counts, and where
        deletes are ignored they settle no record. Both rows of a move wait."""
        exempt = self.history != "none" or self._keeps_rows or self.setup.source == POLL
        return set() if exempt else waiting - self.table.bad - self.table.moved

    def remember(self, waiting: set[Any]) -> None:
        """The copy is equal to its source."""
        shown = {
            column.id
            for column in self.table.columns
            if not self.is_left_out(column) and column.born != self.table.writes
        }
        now = {
            key: row
            for key, row in self.table.rows.items()
            if key not in self.outside and self._selects(self.table.named_row(key))
        }
        rows = {key: _of_columns(row, shown) for key, row in now.items()}
        self.past.remember(
            self.table, rows, self.setup, waiting | self.unknown | self.set_values.keys() | self.table.bad
        )

    @property
    def _keeps_rows(self) -> bool:
        """Whether rows that left the source may stay."""
        ignored = {"delete", "truncate"} if self.table.truncates else {"delete"}
        return self.setup.on_delete == "ignore" or not ignored.isdisjoint(self.setup.ignore)

    def _selects(self, row: Mapping[str, Any]) -> bool:
        return not self.setup.filtered or row[NUMBER] not in (None, FILTERED_OUT)

    def _leaves_out(self, row: Mapping[str, Any]) -> bool:
        return self.setup.mode == SCHEMA_ONLY or (self.setup.partial and row[NUMBER] in (None, NOT_COPIED))

    def _wrong_values(self, key: Any, truth: Mapping[str, Any], copied: Mapping[str, Any]) -> Iterator[str]:
        if self.setup.constant and copied.get(CONSTANT) != CONSTANT_VALUE:
            yield f"{key!r}: {CONSTANT} is {copied.get(CONSTANT)!r}"
        for column in self.table.columns:
            if column.name not in truth:
                continue
            name, expected = self._expected(key, column, truth[column.name])
            if self.is_left_out(column):
                if column.id in self.table.withheld and copied.get(name) is not None:
                    yield f"{key!r}: the withheld column {name} has {copied[name]!r}"
                continue
            if column.born == self.table.writes:
                continue  # no message shows it before the next write
            if self.setup.sensitive and column.renamed and not self.table.has_ids:
                continue  # a new name is a new column
            if self.table.confused and not self.table.shows_renames and (column.renamed or name in self.table.former):
                continue  # no message distinguishes the columns of one name
            if column.name == TIME and truth[TIME] == BAD_TIME and self.nulls and copied.get(name) is None:
                continue
            if name not in copied:
                yield f"{key!r}: the column {name} is missing"
            elif text(copied[name]) != text(expected):
                yield f"{key!r}: {name} is {copied[name]!r}, in truth {expected!r}"

    def is_left_out(self, column: Column) -> bool:
        excluded = self.setup.secret == "exclude" and column.name == SECRET
        excluded |= self.setup.secret == "include" and column.name not in (KEY, NUMBER, TEXT, TIME)
        return excluded or column.id in self.left_out or column.id in self.table.withheld

    def _expected(self, key: Any, column: Column, value: Any) -> tuple[str, Any]:
        """Name and value of a column in the copy."""
        value = self.set_values.get(key, {}).get(column.name, value)
        if column.name == TIME and value == BAD_TIME and self.setup.set_null:
            return TIME, None
        if column.name != SECRET:
            return column.name, value
        name = RENAMED if self.setup.secret == "rename" else SECRET
        hide = HIDDEN.get(self.setup.secret)
        return name, hide(value) if hide and value is not None else value

    def _version_faults(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for key, versions in _by_key(rows).items():
            most = 1 + self.table.written.get(key, 0) + self.recounted
            if len(versions) > most:
                yield f"{key!r} has {len(versions)} versions, but was written {most} times"
            if sum(bool(row["_cdc_is_current"]) for row in versions) > 1:
                yield f"{key!r} has several current versions"
            for earlier, later in pairwise(versions):
                if earlier["_cdc_valid_to"] is None or earlier["_cdc_valid_to"] > later["_cdc_valid_from"]:
                    yield f"versions of {key!r} overlap: until {earlier['_cdc_valid_to']}, {later['_cdc_valid_from']}"

    def _last_of_each(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        last: dict[Any, Mapping[str, Any]] = {}
        for row in sorted(rows, key=lambda row: str(row["_cdc_sequence"])):
            if row["_cdc_operation"] == "truncate":
                last.clear()
            elif row["_cdc_operation"] == "delete":
                last.pop(row[KEY], None)
            else:
                last[row[KEY]] = row
        yield from last.values()


def _by_key(rows: Iterable[Mapping[str, Any]]) -> dict[Any, list[Mapping[str, Any]]]:
    """Versions of each row, in their order."""
    found = defaultdict[Any, list[Mapping[str, Any]]](list)
    for row in sorted(rows, key=lambda row: row["_cdc_sequence"]):
        found[row[KEY]].append(row)
    return found


def _of_columns(row: Row, ids: set[int]) -> Row:
    return {column: value for column, value in row.items() if column in ids}


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_cdc")}
