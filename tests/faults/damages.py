"""What can go wrong, done by hand to the leavings of a replicator: each breaks one invariant.

A damage takes the judge of a copied folder. What it writes into a copy goes by a commit that bears a control record, as
ours do.
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
from tests.faults.checker.judge import Judge
from tests.faults.checker.ledger import Shape
from tests.faults.checker.staging import Window, read_log

Rows = list[dict[str, Any]]
Damage = Callable[[Judge], None]


def shape_of(judge: Judge, name: str) -> Shape:
    return next(shape for shape in judge.ledger.shapes.values() if shape.table.startswith(f"public.{name}"))


def forge(judge: Judge, name: str, change: Callable[[Rows], Rows] = lambda rows: rows, **record: Any) -> None:
    """One commit more to a copy, with these rows and the last control record, one fence higher, changed so."""
    place = judge.folder / "lake" / shape_of(judge, name).target
    table = DeltaTable(place)
    last = next(json.loads(e["userMetadata"]) for e in table.history() if "userMetadata" in e)
    told = last | {"fence": last["fence"] + 1, "nonce": f"forged {table.version()}"} | record
    found = read(table)
    rows = pyarrow.Table.from_pylist(change(found.to_pylist()), schema=found.schema)
    properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(told)})
    write_deltalake(place, rows, mode="overwrite", commit_properties=properties)
    control = judge.folder / "staging" / judge.name / "control" / last["table"]
    seal(control / f"{told['fence']:010d}-{told['window']:010d}.json", told)


def seal(path: Path, body: dict[str, Any]) -> None:
    text = json.dumps(body, sort_keys=True)
    path.write_text(f"{text}\nsha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


def last_window(judge: Judge) -> tuple[Window, Path]:
    log = read_log(judge.folder / "staging" / judge.name)
    number = max(n for n, window in log.windows.items() if window.records("public.accounts"))
    return log.windows[number], log.folder / "windows" / f"{number:010d}" / "MANIFEST"


def reseal(judge: Judge, change: Callable[[dict[str, Any]], object]) -> None:
    window, path = last_window(judge)
    change(window.body)
    seal(path, window.body)


def data_file(judge: Judge) -> Path:
    window, path = last_window(judge)
    return path.parents[2] / window.files("public.accounts")[0]["path"]


def one_record_less(judge: Judge) -> None:
    """With all sums made to fit and by one who has not seen it before: only the source knows better."""
    judge.manifests.clear()
    path = data_file(judge)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, rows.num_rows - 1), path)
    gone = rows.slice(rows.num_rows - 1).to_pylist()[0]["op"]

    def fit(body: dict[str, Any]) -> None:
        part = body["tables"]["public.accounts"]
        part["counts"][gone] -= 1
        content = path.read_bytes()
        file = {"rows": rows.num_rows - 1, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        part["files"][0] |= file

    reseal(judge, fit)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def in_store(judge: Judge, statement: str, *values: object) -> None:
    with sqlite3.connect(judge.folder / "state.db") as connection:
        connection.execute(statement, values)


def index_ahead(judge: Judge) -> None:
    with sqlite3.connect(judge.folder / "state.db") as connection:
        query = "SELECT body FROM cdc_table WHERE \"table\" = 'public.events'"
        body = json.loads(connection.execute(query).fetchone()[0])
    body["window"] += 1
    in_store(judge, "UPDATE cdc_table SET body = ? WHERE \"table\" = 'public.events'", json.dumps(body))


def paused_and_written(judge: Judge) -> None:
    paused = {"name": "paused", "since": "", "reason": "", "remedy": "", "set_by": "", "command": "", "version": None}
    forge(judge, "events", state=paused)
    forge(judge, "events", lambda rows: rows[1:], state=paused)


def copy_file_gone(judge: Judge) -> None:
    table = DeltaTable(judge.folder / "lake" / "accounts")
    Path(table.file_uris()[0].removeprefix("file://")).unlink()


def commit_replaced(judge: Judge) -> None:
    """By one that says the same of the table."""
    path = max((judge.folder / "lake" / "accounts" / "_delta_log").glob("*.json"))
    path.write_bytes(path.read_bytes().rstrip() + b" \n")


def older(rows: Rows) -> Rows:
    return [rows[0] | {"_cdc_order": "0" * 50}, *rows[1:]]


def window_of(judge: Judge, name: str) -> int:
    return int(judge.histories[shape_of(judge, name).table][-1].record["window"])  # type: ignore[index]


def torn(judge: Judge) -> None:
    """As if the last commit had left out one change of a transaction with several."""
    for transaction in reversed(judge.ledger.transactions):
        for change in transaction.changes if len(transaction.changes) > 1 else ():
            shape = judge.ledger.shapes[change.table]
            if change.before and change.after and shape.key_of(change.before) == shape.key_of(change.after):
                old, new = (dict(zip(shape.columns, row, strict=True)) for row in (change.before, change.after))
                with contextlib.suppress(LookupError):
                    return forge(judge, shape.table.removeprefix("public."), partial(taken_back, old, new))
    raise AssertionError("no row is as a transaction of several changes left it")


def taken_back(old: dict[str, object], new: dict[str, object], rows: Rows) -> Rows:
    """Raises LookupError where no row is as ``new`` says, or nothing of it has changed that can be compared."""
    changed = {name: value for name, value in old.items() if isinstance(value, int | str) and value != new[name]}
    told = {name: value for name, value in new.items() if isinstance(value, int | str)}
    places = [at for at, row in enumerate(rows) if told.items() <= row.items()]
    if not changed or not places:
        raise LookupError(new)
    return [row | changed if at == places[0] else row for at, row in enumerate(rows)]


def quarantined(judge: Judge) -> None:
    folder = judge.folder / "staging" / judge.name / "quarantine" / "public.accounts"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{}")


def written(judge: Judge, where: str, text: str) -> None:
    path = judge.folder / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


LEASE = "INSERT INTO cdc_lease VALUES (?, 'stream', 'a run that is over', 1e12)"
BLOCKED = {"name": "blocked", "since": "", "reason": "", "remedy": "", "set_by": "", "command": "", "version": None}
DIRTY = {"files": [], "counts": {"dirty": 1}}

DAMAGES: dict[str, tuple[str, Damage]] = {
    "a row is lost": ("commit equals the source", lambda j: forge(j, "accounts", lambda rows: rows[1:])),
    "a row of a key is doubled": ("no key twice", lambda j: forge(j, "accounts", lambda rows: [*rows, rows[0]])),
    "a row without key is doubled": (
        "commit equals the source",
        lambda j: forge(j, "events", lambda rows: [*rows, rows[0]]),
    ),
    "a transaction is torn": ("commit equals the source", torn),
    "a mark of a deleted row is wrong": (
        "commit equals the source",
        lambda j: forge(j, "later", lambda rows: [row | {"_cdc_deleted": not row["_cdc_deleted"]} for row in rows]),
    ),
    "a cursor goes back": (
        "cursor and fence never go back",
        lambda j: forge(j, "events", window=window_of(j, "events") - 1),
    ),
    "a commit under an old fence": ("no commit under an old fence", lambda j: forge(j, "events", fence=0)),
    "a commit is replaced": ("a commit is never replaced", commit_replaced),
    "an older row wins": ("order per key", lambda j: forge(j, "accounts", older)),
    "a paused table is written": ("no data commit to a paused table", paused_and_written),
    "a manifest is damaged": ("a sealed window never changes", lambda j: flip(last_window(j)[1])),
    "a manifest is another one": (
        "a sealed window never changes",
        lambda j: reseal(j, lambda b: b.update(attempt="x")),
    ),
    "a data file is damaged": ("a sealed window never changes", lambda j: flip(data_file(j))),
    "a data file is gone": ("nothing referenced is deleted", lambda j: data_file(j).unlink()),
    "a window is gone": ("nothing referenced is deleted", lambda j: last_window(j)[1].unlink()),
    "a file of the copy is gone": ("nothing referenced is deleted", copy_file_gone),
    "a range is stepped over": (
        "a missing range is never stepped over",
        lambda j: reseal(j, lambda b: b["lo"].update(slot=b["hi"]["slot"])),
    ),
    "a record is left out": ("every record is accounted for", one_record_less),
    "the index is ahead": ("state store never ahead", index_ahead),
    "a password is written down": (
        "no secret in any artefact",
        lambda j: written(j, f"staging/{j.name}/steps/x.json", f"password={j.secrets[0]}"),
    ),
    "a key stays dirty": ("no key stays dirty silently", lambda j: forge(j, "accounts", carry=DIRTY)),
    "a good record is in quarantine": ("quarantine holds what cannot be read", quarantined),
    "a table is left blocked": ("one table's trouble is its own", lambda j: forge(j, "accounts", state=BLOCKED)),
    "a lane is never given back": ("every command is idempotent", lambda j: in_store(j, LEASE, j.name)),
}
