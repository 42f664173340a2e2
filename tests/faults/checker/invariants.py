"""The invariants, each a function from the observed state to its findings. No finding is a success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.faults.checker.commits import Commit, anchor, wal
from tests.faults.checker.ledger import Ledger, Row, Shape
from tests.faults.checker.staging import Log, file_problem
from tests.faults.checker.store import Store


@dataclass(frozen=True)
class Finding:
    """``invariant``: the name of the violated invariant."""

    invariant: str
    table: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.table}: {self.what}"


@dataclass(frozen=True)
class History:
    """The states of one table, oldest first."""

    shape: Shape
    commits: Sequence[Commit]

    @property
    def ours(self) -> list[Commit]:
        return [one for one in self.commits if one.record is not None]

    def found(self, invariant: str, what: str) -> Finding:
        return Finding(invariant, self.shape.copy, what)


def position(ledger: Ledger, commit: Commit) -> int:
    """The number of transactions that the cursor of a commit covers: up to the end of its window, or up to its copy."""
    record = commit.record
    assert record is not None
    hi = wal(record["hi"]["slot"]) if record["hi"] else 0
    return max(ledger.upto(hi), ledger.before(anchor(record["floor"])))


def states_of_the_source(history: History, ledger: Ledger) -> Iterator[Finding]:
    """No loss up to the cursor, order per key, whole transactions: a commit contains the rows of the source at its
    cursor. A commit of another writer, such as upkeep or a restore, has the rows of an earlier commit of the
    product. The commit of another copy in the same table changes no row of this one."""
    shape, before = history.shape, None
    for earlier, one in zip([None, *history.commits], history.commits, strict=False):
        if one.foreign:
            if earlier and one.rows != earlier.rows:
                yield history.found("a commit changes its own copy only", f"state {one.number} has other rows")
            continue
        if one.record is None:
            stood = [ours for ours in history.ours if ours.number < one.number]
            if not any(ours.rows == one.rows for ours in stood):
                yield history.found(
                    "commit equals the source", f"state {one.number} without a record has the rows of no earlier commit"
                )
            continue
        count = position(ledger, one)
        wanted = ledger.rows(shape.table, count)
        if one.rows != wanted:
            yield history.found("commit equals the source", f"{_where(one)}: {_difference(one.rows, wanted)}")
        live = {shape.key_of(row) for row in one.rows}
        if strangers := one.flagged - {shape.key_of(row) for row in ledger.ever(shape.table, count)}:
            yield history.found(
                "commit equals the source", f"{_where(one)}: flagged, never in the source: {_few(strangers)}"
            )
        if both := one.flagged & live:
            yield history.found("no key twice", f"{_where(one)}: live and flagged: {_few(both)}")
        if before is not None and _same_data(before, one) is False and _token_only(before, one):
            yield history.found("commit equals the source", f"{_where(one)}: a fence changed rows")
        before = one


def no_key_twice(history: History) -> Iterator[Finding]:
    for one in history.commits:
        if one.twice:
            yield history.found("no key twice", f"state {one.number}: {_few(one.twice)}")


def never_back(history: History) -> Iterator[Finding]:
    """Fence and token only grow; a commit under an old fence would violate that. The cursor goes back only after a
    recorded rewind."""
    for before, after in pairwise(history.ours):
        assert before.record is not None and after.record is not None
        if before.record["nonce"] == after.record["nonce"]:
            continue
        if after.record["fence"] < before.record["fence"]:
            yield history.found("no commit under an old fence", f"{_where(after)} after {_where(before)}")
        elif after.token <= before.token or (
            after.record["window"] < before.record["window"] and before.state != "rewinding"
        ):
            yield history.found("cursor and fence never go back", f"{_where(after)} after {_where(before)}")


def order_per_key(history: History) -> Iterator[Finding]:
    """Only a rewind replaces the row of a key by an older one."""
    for before, after in pairwise(history.ours):
        if before.state == "rewinding":
            continue
        older = [key for key, order in after.orders.items() if order < before.orders.get(key, "")]
        if older:
            yield history.found("order per key", f"{_where(after)}: {_few(older)}")


def paused_stays(history: History) -> Iterator[Finding]:
    for before, after in pairwise(history.ours):
        if before.state == after.state == "paused" and not _same_data(before, after):
            yield history.found("no data commit to a paused table", _where(after))
        if before.state == "paused" and after.state != "paused" and before.rows != after.rows:
            yield history.found("no data commit to a paused table", f"{_where(after)} ends the pause and changes rows")


def sealed_windows(log: Log, seen: Mapping[int, str]) -> Iterator[Finding]:
    """``seen``: window → SHA-256 of its manifest, from earlier checks."""
    for corrupt in log.corrupt:
        yield Finding("a sealed window never changes", "log", corrupt)
    for number, window in log.windows.items():
        if number in seen and seen[number] != window.sha256:
            yield Finding("a sealed window never changes", "log", f"window {number} has changed")
        before = log.windows.get(number - 1)
        if before is None:
            continue
        if window.body["previous_sha256"] != before.sha256:
            yield Finding("a sealed window never changes", "log", f"window {number} names another previous window")
        holes = {hole["table"] for hole in window.body.get("holes", ())}
        if window.lo != before.hi and not holes >= set(window.body["tables"]):
            yield Finding("no range of the stream is skipped", "log", f"between window {number - 1} and {number}")
    numbers = sorted(log.windows)
    if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
        yield Finding("nothing referenced is deleted", "log", f"windows {numbers}")


def never_replaced(files: Mapping[str, str], seen: Mapping[str, str]) -> Iterator[Finding]:
    """Both: file of a commit → SHA-256 of its content, now and at earlier checks."""
    for path in sorted(files.keys() & seen.keys()):
        if files[path] != seen[path]:
            yield Finding("a commit is never replaced", path.partition("/")[0], f"{path} has changed")


def accounted(log: Log, ledger: Ledger, histories: Sequence[History], only: Sequence[int]) -> Iterator[Finding]:
    """After the first copy of a table, every change of the source is in the window of its commit, as often as it was
    made. Earlier changes may be missing."""
    for number in only:
        window = log.windows[number]
        for history in histories:
            shape = history.shape
            if shape.table not in window.body["tables"] or window.has_hole(shape.table) or not history.ours:
                continue
            copied = anchor(history.ours[0].record["floor"])  # type: ignore[index]
            wanted: Counter[int] = Counter()
            inside = ledger.within(window.lo, window.hi)
            for transaction in inside:
                count = sum(c.records(shape) for c in transaction.changes if c.table == shape.table)
                wanted.update({transaction.xid: count} if count and transaction.start >= copied else {})
            in_the_log = log.counts_by_transaction(window, shape.table)
            early = {transaction.xid for transaction in inside if transaction.start < copied}
            found = Counter({xid: count for xid, count in in_the_log.items() if xid not in early})
            if found != wanted:
                what = f"window {number}: {sum(found.values())} records of {len(found)} transactions"
                what += f", expected were {sum(wanted.values())} of {len(wanted)}"
                yield Finding("every record is accounted for", shape.table, what)
            stated = sum(n for op, n in window.body["tables"][shape.table]["counts"].items() if op != "schema")
            if stated != in_the_log.total():
                yield Finding("every record is accounted for", shape.table, f"window {number} states {stated}")


def nothing_needed_is_gone(log: Log, histories: Sequence[History], only: Sequence[int]) -> Iterator[Finding]:
    for number in only:
        for table in log.windows[number].body["tables"]:
            for file in log.windows[number].files(table):
                if what := file_problem(log.folder, file):
                    invariant = "nothing referenced is deleted" if "gone" in what else "a sealed window never changes"
                    yield Finding(invariant, table, what)
    for history in histories:
        if not history.ours:
            continue
        newest = history.ours[-1]
        record = newest.record
        assert record is not None
        oldest, applied = min(log.windows, default=0), record["window"]
        if oldest > applied + 1:
            yield history.found("nothing referenced is deleted", f"the log begins after window {applied}")
        elif applied >= oldest and applied not in log.windows:
            yield history.found("nothing referenced is deleted", f"window {applied}, which is applied")
        elif applied in log.windows and log.windows[applied].sha256 != record["manifest_sha256"]:
            yield history.found("a sealed window never changes", f"window {applied} is not the one that was applied")
        yield from _named(history, newest, log.controls(history.shape.copy))
        listing = record["carry"].get("listing")
        for file in (*record["carry"]["files"], *([listing] if listing else [])):
            if what := file_problem(log.folder, file):
                yield history.found("nothing referenced is deleted", what)


def _named(history: History, newest: Commit, controls: Mapping[int, Mapping[str, Any]]) -> Iterator[Finding]:
    """A copy that is committed and has no name yet has raised the fence of the old one to its own, which its own record
    has in the log."""
    record = newest.record
    assert record is not None
    same = ("fence", "attempt")
    for copy in controls.values():
        if all(copy[name] == record[name] for name in same) and copy["floor"] > record["floor"]:
            return
    if newest.token not in controls:
        yield history.found("nothing referenced is deleted", f"{_where(newest)} has no control file")
    elif controls[newest.token]["nonce"] != record["nonce"]:
        yield history.found("no commit under an old fence", f"{_where(newest)} was named by another attempt")


def acknowledged_last(log: Log, histories: Sequence[History], slot: int | None) -> Iterator[Finding]:
    """A table without an applied window since its copy does not delay the acknowledgement: the log contains its
    changes."""
    if slot is None or not log.windows:
        return
    if slot > log.windows[max(log.windows)].hi:
        yield Finding("acknowledged last", "source", "beyond the last sealed window")
    for history in histories:
        if not history.ours or history.ours[-1].state != "replicating":
            continue
        record = history.ours[-1].record
        assert record is not None
        behind = [n for n in log.windows if n > record["window"] and log.windows[n].records(history.shape.table)]
        at_its_copy = not record["hi"] or anchor(record["floor"]) > wal(record["hi"]["slot"])
        if behind and slot > log.windows[min(behind)].lo and not at_its_copy:
            yield history.found("acknowledged last", f"window {min(behind)} is not applied")


def store_behind(store: Store, histories: Sequence[History]) -> Iterator[Finding]:
    for history in histories:
        row = store.tables.get(history.shape.copy)
        if row is None or row["state"] == "dropped":
            continue
        token = int(row["fence"]) << 32 | int(row["window"])
        committed = history.ours[-1].token if history.ours else 0
        if token > committed:
            yield history.found("state store never ahead", f"fence {row['fence']}, window {row['window']}")


def at_rest(log: Log, store: Store, histories: Sequence[History]) -> Iterator[Finding]:
    """After runs without faults every table is replicating and caught up, and no work is unfinished."""
    for history in histories:
        table = history.shape.table
        if not history.ours:
            yield history.found("one table's failure does not affect others", "it has no copy")
            continue
        last, row = history.ours[-1], store.tables.get(history.shape.copy, {"state": "missing"})
        record = last.record
        assert record is not None
        if (last.state, row["state"]) != ("replicating", "replicating"):
            yield history.found(
                "one table's failure does not affect others", f"{last.state}, in the index {row['state']}"
            )
        behind = [n for n in log.windows if n > record["window"] and log.windows[n].records(table)]
        if behind:
            yield history.found("one table's failure does not affect others", f"windows {behind} are not applied")
        if any(record["carry"]["counts"].values()):
            yield history.found("no key stays dirty silently", str(record["carry"]["counts"]))
    for kind in ("leases", "claims", "attempts", "requests"):
        for left in getattr(store, kind):
            yield Finding("every command is idempotent", "index", f"left open among {kind}: {left}")
    for path in log.quarantined():
        yield Finding(
            "quarantine contains only unreadable records", "log", f"{path} although every record was readable"
        )


def _same_data(before: Commit, after: Commit) -> bool:
    return (before.rows, before.flagged) == (after.rows, after.flagged)


def _token_only(before: Commit, after: Commit) -> bool:
    assert before.record is not None and after.record is not None
    same = ("window", "floor")
    return all(before.record[name] == after.record[name] for name in same) and after.state != before.state


def _went_back(before: Commit, after: Commit) -> bool:
    assert before.record is not None and after.record is not None
    return before.state != "rewinding" and bool(after.record["window"] < before.record["window"])


def _where(commit: Commit) -> str:
    assert commit.record is not None
    fence, window, by = commit.record["fence"], commit.record["window"], commit.record["attempt"]
    return f"state {commit.number} (fence {fence}, window {window}, {commit.state}, by {by})"


def _difference(found: Counter[Row], wanted: Counter[Row]) -> str:
    lost, more = wanted - found, found - wanted
    return f"{lost.total()} rows are missing, {more.total()} too many: -{_few(lost)} +{_few(more)}"


def _few(rows: object) -> str:
    return str(sorted(map(str, rows))[:3])  # type: ignore[call-overload]
