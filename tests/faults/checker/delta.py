"""Every version of a Delta table, read by the library alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from pathlib import Path
from typing import Any

import pyarrow
from deltalake import DeltaTable, QueryBuilder

from tests.faults.checker.commits import Commit, commit
from tests.faults.checker.ledger import Shape


class DeltaReader:
    """Copies are folders of ``lake``."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake

    def commits(self, shape: Shape, known: Container[int]) -> list[Commit]:
        """The states that are not ``known``, oldest first."""
        path = self.lake / shape.target
        if not (path / "_delta_log").is_dir():
            return []
        history = sorted(DeltaTable(path).history(), key=lambda entry: int(entry["version"]))
        return [
            commit(int(entry["version"]), _record(entry), shape, _rows(path, int(entry["version"])))
            for entry in history
            if int(entry["version"]) not in known
        ]

    def missing_files(self, shape: Shape) -> list[str]:
        """Files that the newest version names and that do not exist."""
        path = self.lake / shape.target
        if not (path / "_delta_log").is_dir():
            return []
        uris = DeltaTable(path).file_uris()
        return [uri for uri in uris if not Path(uri.removeprefix("file://")).is_file()]

    def commit_files(self, shape: Shape) -> dict[str, str]:
        found = sorted((self.lake / shape.target / "_delta_log").glob("*.json"))
        return {f"{shape.target}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    def texts(self) -> list[str]:
        return []


def _record(entry: dict[str, Any]) -> dict[str, Any] | None:
    text = entry.get("userMetadata")
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) and "fence" in found else None


def _rows(path: Path, version: int) -> list[dict[str, Any]]:
    table = DeltaTable(path, version=version)
    answer = QueryBuilder().register("t", table).execute("select * from t").read_all()
    found: list[dict[str, Any]] = pyarrow.table(answer).to_pylist()
    return found
