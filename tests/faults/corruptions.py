"""Corruptions of the files and tables of a replicator: each violates one invariant.

A corruption takes the checker of a copied folder. It writes into a copy by a commit with a control record, as the
product does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.delta_tables import read
from tests.faults.checker.checker import Checker
from tests.faults.checker.ledger import Shape
from tests.faults.checker.staging import Window, read_log

Rows = list[dict[str, Any]]
Corruption = Callable[[Checker], None]


def shape_of(checker: Checker, name: str) -> Shape:
    return next(shape for shape in checker.ledger.shapes.values() if shape.table.startswith(f"public.{name}"))


def forge(checker: Checker, name: str, change: Callable[[Rows], Rows] = lambda rows: rows, **record: Any) -> None:
    """Adds a commit to a copy, with the changed rows and the last control record, one fence higher, with ``record``."""
    path = checker.folder / "lake" / shape_of(checker, name).target
    table = DeltaTable(path)
    last = next(json.loads(e["userMetadata"]) for e in table.history() if "userMetadata" in e)
    forged = last | {"fence": last["fence"] + 1, "nonce": f"forged {table.version()}"} | record
    found = read(table)
    rows = pyarrow.Table.from_pylist(change(found.to_pylist()), schema=found.schema)
    properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(forged)})
    write_deltalake(path, rows, mode="overwrite", commit_properties=properties)
    control = checker.folder / "staging" / checker.name / "control" / last["table"]
    seal(control / f"{forged['fence']:010d}-{forged['window']:010d}.json", forged)


def seal(path: Path, body: dict[str, Any]) -> None:
    text = json.dumps(body, sort_keys=True)
    path.write_text(f"{text}\nsha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


def last_window(checker: Checker) -> tuple[Window, Path]:
    log = read_log(checker.folder / "staging" / checker.name)
    number = max(n for n, window in log.windows.items() if window.records("public.accounts"))
    return log.windows[number], log.folder / "windows" / f"{number:010d}" / "MANIFEST"


def reseal(checker: Checker, change: Callable[[dict[str, Any]], object]) -> None:
    window, path = last_window(checker)
    change(window.body)
    seal(path, window.body)


def data_file(checker: Checker) -> Path:
    window, path = last_window(checker)
    return path.parents[2] / window.files("public.accounts")[0]["path"]


def one_record_less(checker: Checker) -> None:
    """All checksums fit, and the checker has not seen the window before: only the source shows the difference."""
    checker.manifests.clear()
    path = data_file(checker)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, rows.num_rows - 1), path)
    gone = rows.slice(rows.num_rows - 1).to_pylist()[0]["op"]

    def fit(body: dict[str, Any]) -> None:
        part = body["tables"]["public.accounts"]
        part["counts"][gone] -= 1
        content = path.read_bytes()
        file = {"rows": rows.num_rows - 1, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        part["files"][0] |= file

    reseal(checker, fit)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def in_store(checker: Checker, statement: str, *values: object) -> None:
    with sqlite3.connect(checker.folder / "state.db") as connection:
        connection.execute(statement, values)


def index_ahead(checker: Checker) -> None:
    with sqlite3.connect(checker.folder / "state.db") as connection:
        query = "SELECT body FROM cdc_table WHERE \"table\" = 'public.events'"
        body = json.loads(connection.execute(query).fetchone()[0])
    body["window"] += 1
    in_store(checker, "UPDATE cdc_table SET body = ? WHERE \"table\" = 'public.events'", json.dumps(body))


def paused_and_written(checker: Checker) -> None:
    paused = {"name": "paused", "since": "", "reason": "", "remedy": "", "set_by": "", "command": "", "version": None}
    forge(checker, "events", state=paused)
    forge(checker, "events", lambda rows: rows[1:], state=paused)


def copy_file_gone(checker: Checker) -> None:
    table = DeltaTable(checker.folder / "lake" / "accounts")
    Path(table.file_uris()[0].removeprefix("file://")).unlink()


def commit_replaced(checker: Checker) -> None:
    """By a commit with the same content."""
    path = max((checker.folder / "lake" / "accounts" / "_delta_log").glob("*.json"))
    path.write_bytes(path.read_bytes().rstrip() + b" \n")


def older(rows: Rows) -> Rows:
    return [rows[0] | {"_cdc_order": "0" * 50}, *rows[1:]]


def window_of(checker: Checker, name: str) -> int:
    commits = checker.histories[shape_of(checker, name).table]
    return int(next(one.record["window"] for one in reversed(commits) if one.record))


def tear_transaction(checker: Checker) -> None:
    """As if the last commit lacked one change of a transaction with several."""
    for transaction in reversed(checker.ledger.transactions):
        for change in transaction.changes if len(transaction.changes) > 1 else ():
            shape = checker.ledger.shapes[change.table]
            if change.before and change.after and shape.key_of(change.before) == shape.key_of(change.after):
                old, new = (dict(zip(shape.columns, row, strict=True)) for row in (change.before, change.after))
                with contextlib.suppress(LookupError):
                    return forge(checker, shape.table.removeprefix("public."), partial(undone, old, new))
    raise AssertionError("no row is in the state after a transaction of several changes")


def undone(old: dict[str, object], new: dict[str, object], rows: Rows) -> Rows:
    """Raises LookupError where no row equals ``new``, or no comparable column of it has changed."""
    changed = {name: value for name, value in old.items() if isinstance(value, int | str) and value != new[name]}
    expected = {name: value for name, value in new.items() if isinstance(value, int | str)}
    indices = [at for at, row in enumerate(rows) if expected.items() <= row.items()]
    if not changed or not indices:
        raise LookupError(new)
    return [row | changed if at == indices[0] else row for at, row in enumerate(rows)]


def add_to_quarantine(checker: Checker) -> None:
    folder = checker.folder / "staging" / checker.name / "quarantine" / "public.accounts"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{}")


def written(checker: Checker, where: str, text: str) -> None:
    path = checker.folder / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


LEASE = "INSERT INTO cdc_lease VALUES (?, 'stream', 'a run that has ended', 1e12)"
BLOCKED = {"name": "blocked", "since": "", "reason": "", "remedy": "", "set_by": "", "command": "", "version": None}
DIRTY = {"files": [], "counts": {"dirty": 1}}

CORRUPTIONS: dict[str, tuple[str, Corruption]] = {
    "a row is lost": ("commit equals the source", lambda c: forge(c, "accounts", lambda rows: rows[1:])),
    "a row of a key is duplicated": ("no key twice", lambda c: forge(c, "accounts", lambda rows: [*rows, rows[0]])),
    "a row without key is duplicated": (
        "commit equals the source",
        lambda c: forge(c, "events", lambda rows: [*rows, rows[0]]),
    ),
    "a transaction is applied in part": ("commit equals the source", tear_transaction),
    "the mark of a deleted row is wrong": (
        "commit equals the source",
        lambda c: forge(c, "later", lambda rows: [row | {"_cdc_deleted": not row["_cdc_deleted"]} for row in rows]),
    ),
    "a cursor goes back": (
        "cursor and fence never go back",
        lambda c: forge(c, "events", window=window_of(c, "events") - 1),
    ),
    "a commit under an old fence": ("no commit under an old fence", lambda c: forge(c, "events", fence=0)),
    "a commit is replaced": ("a commit is never replaced", commit_replaced),
    "an older row replaces a newer one": ("order per key", lambda c: forge(c, "accounts", older)),
    "a paused table is written": ("no data commit to a paused table", paused_and_written),
    "a manifest is corrupt": ("a sealed window never changes", lambda c: flip(last_window(c)[1])),
    "a manifest is replaced": (
        "a sealed window never changes",
        lambda c: reseal(c, lambda b: b.update(attempt="x")),
    ),
    "a data file is corrupt": ("a sealed window never changes", lambda c: flip(data_file(c))),
    "a data file is missing": ("nothing referenced is deleted", lambda c: data_file(c).unlink()),
    "a window is missing": ("nothing referenced is deleted", lambda c: last_window(c)[1].unlink()),
    "a file of the copy is missing": ("nothing referenced is deleted", copy_file_gone),
    "a range of the stream is skipped": (
        "no range of the stream is skipped",
        lambda c: reseal(c, lambda b: b["lo"].update(slot=b["hi"]["slot"])),
    ),
    "a record is missing": ("every record is accounted for", one_record_less),
    "the index is ahead": ("state store never ahead", index_ahead),
    "a password is in a file": (
        "no secret in any artefact",
        lambda c: written(c, f"staging/{c.name}/steps/x.json", f"password={c.secrets[0]}"),
    ),
    "a key stays dirty": ("no key stays dirty silently", lambda c: forge(c, "accounts", carry=DIRTY)),
    "a good record is in quarantine": ("quarantine contains only unreadable records", add_to_quarantine),
    "a table stays blocked": (
        "one table's failure does not affect others",
        lambda c: forge(c, "accounts", state=BLOCKED),
    ),
    "a lease is never released": ("every command is idempotent", lambda c: in_store(c, LEASE, c.name)),
}
