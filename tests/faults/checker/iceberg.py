"""Every state of the main branch of an Iceberg table, read by the library alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from tests.faults.checker.commits import Commit, commit
from tests.faults.checker.ledger import Shape


class IcebergReader:
    """Copies are tables of the namespace ``cdc`` in the SQLite catalog of ``lake``. The number of a state is its
    index in the snapshot log."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake

    def commits(self, shape: Shape, known: Container[int]) -> list[Commit]:
        with self._opened(shape) as table:
            if table is None:
                return []
            found = []
            for number, entry in enumerate(table.metadata.snapshot_log):
                snapshot = table.snapshot_by_id(entry.snapshot_id)
                if number in known or snapshot is None:
                    continue
                text = snapshot.summary.additional_properties.get("cdc.record")
                rows = table.scan(snapshot_id=entry.snapshot_id).to_arrow().to_pylist()
                found.append(commit(number, json.loads(text) if text else None, shape, rows))
            return found

    def missing_files(self, shape: Shape) -> list[str]:
        with self._opened(shape) as table:
            if table is None or table.current_snapshot() is None:
                return []
            paths = [task.file.file_path for task in table.scan().plan_files()]
            paths += [delete.file_path for task in table.scan().plan_files() for delete in task.delete_files]
        return [path for path in paths if not Path(path.removeprefix("file://").removeprefix("file:")).is_file()]

    def commit_files(self, shape: Shape) -> dict[str, str]:
        return {}

    def texts(self) -> list[str]:
        return []

    @contextlib.contextmanager
    def _opened(self, shape: Shape) -> Iterator[Any]:
        if not (self.lake / "catalog.db").is_file():
            yield None
            return
        with contextlib.closing(SqlCatalog("lake", uri=f"sqlite:///{self.lake}/catalog.db?timeout=60")) as catalog:
            try:
                yield catalog.load_table(f"cdc.{shape.target}")
            except NoSuchTableError:
                yield None
