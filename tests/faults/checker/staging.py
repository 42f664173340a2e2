"""The change log as files: JSON, Parquet and checksums, read without code of the product."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow.parquet as pq

from tests.faults.checker.commits import wal

ROW_OPS = frozenset({"insert", "update", "delete", "truncate"})


class Corrupt(Exception):
    """A file that does not match its checksum."""


@dataclass(frozen=True)
class Window:
    number: int
    body: dict[str, Any]
    sha256: str

    @property
    def lo(self) -> int:
        return wal(self.body["lo"]["slot"])

    @property
    def hi(self) -> int:
        return wal(self.body["hi"]["slot"])

    def files(self, table: str) -> list[dict[str, Any]]:
        part = self.body["tables"].get(table)
        return list(part["files"]) if part else []

    def records(self, table: str) -> int:
        return sum(file["rows"] for file in self.files(table))

    def has_hole(self, table: str) -> bool:
        return any(hole["table"] == table for hole in self.body.get("holes", ()))


@dataclass(frozen=True)
class Log:
    """``folder``: that of the replicator. ``corrupt``: the errors of unreadable manifests."""

    folder: Path
    windows: dict[int, Window] = field(default_factory=dict)
    corrupt: tuple[str, ...] = ()

    def controls(self, table: str) -> dict[int, dict[str, Any]]:
        """Token → control record."""
        found = {}
        for path in sorted(self.folder.glob(f"control/{quote(table, safe='')}/*.json")):
            fence, _, window = path.stem.partition("-")
            found[int(fence) << 32 | int(window)] = unsealed(path)
        return found

    def counts_by_transaction(self, window: Window, table: str) -> Counter[int]:
        """The number of change records of a window, by transaction."""
        counts: Counter[int] = Counter()
        for file in window.files(table):
            records = pq.read_table(self.folder / file["path"], columns=["op", "tx_id"]).to_pylist()
            counts.update(int(row["tx_id"]) for row in records if row["op"] in ROW_OPS)
        return counts

    def quarantined(self) -> list[Path]:
        return [path for path in self.folder.glob("quarantine/**/*") if path.is_file()]


def read_log(folder: Path) -> Log:
    windows, corrupt = {}, []
    for path in sorted(folder.glob("windows/*/MANIFEST")):
        number = int(unquote(path.parent.name))
        try:
            windows[number] = Window(number, unsealed(path), hashlib.sha256(path.read_bytes()).hexdigest())
        except Corrupt as error:
            corrupt.append(str(error))
    return Log(folder, windows, tuple(corrupt))


def unsealed(path: Path) -> dict[str, Any]:
    """One line of JSON, one line with its SHA-256."""
    text, _, tail = path.read_text().partition("\n")
    if tail.strip() != f"sha256 {hashlib.sha256(text.encode()).hexdigest()}":
        raise Corrupt(f"{path} does not match its own checksum")
    body: dict[str, Any] = json.loads(text)
    return body


def file_problem(folder: Path, file: dict[str, Any]) -> str:
    """Empty where a data file is as its manifest or record specifies."""
    path = folder / file["path"]
    if not path.is_file():
        return f"{path} is gone"
    content = path.read_bytes()
    if (len(content), hashlib.sha256(content).hexdigest()) != (file["bytes"], file["sha256"]):
        return f"{path} has changed"
    return ""
