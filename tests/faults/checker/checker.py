"""Checks all invariants of one replicator from its source, copies, change log, state store and files."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import psycopg

from tests.faults.checker import invariants as must
from tests.faults.checker.commits import Commit
from tests.faults.checker.invariants import Finding, History
from tests.faults.checker.ledger import Ledger, Shape
from tests.faults.checker.staging import read_log
from tests.faults.checker.store import read_store
from tests.faults.checker.wal import acknowledged, record_commits


class Reader(Protocol):
    def commits(self, shape: Shape, known: Container[int]) -> list[Commit]: ...

    def missing_files(self, shape: Shape) -> list[str]: ...

    def commit_files(self, shape: Shape) -> dict[str, str]:
        """Files of commits → SHA-256 of their content, where commits are files with fixed names."""

    def texts(self) -> list[str]: ...


@dataclass
class Checker:
    """``folder`` contains everything that the replicator ``name`` writes: staging, lake, state store, outputs. None of
    it may contain ``secrets``. ``readers``: of the copies in each target, by its name. ``staging``: the location of the
    change log after a move; ``renamed``: the new name. A state without findings is not checked again, but must not
    change."""

    name: str
    dsn: str
    slot: str
    folder: Path
    ledger: Ledger
    readers: Mapping[str, Reader]
    secrets: Sequence[str]
    manifests: dict[int, str] = field(default_factory=dict)
    commit_files: dict[str, str] = field(default_factory=dict)
    histories: dict[str, list[Commit]] = field(default_factory=dict)
    staging: Path | None = None
    renamed: str = ""

    def read_commits(self) -> dict[str, list[Commit]]:
        """Reads the states of all tables that are new since the last check."""
        for shape in self.copies:
            known = self.histories.setdefault(shape.copy, [])
            known += self.readers[shape.at].commits(shape, {one.number for one in known})
        return self.histories

    @property
    def copies(self) -> list[Shape]:
        """Of each source table, in each target."""
        return [replace(shape, at=name) for name in self.readers for shape in self.ledger.shapes.values()]

    def forget(self, table: str) -> None:
        """Its copies are not checked any more."""
        for name in self.readers:
            self.histories.pop(Shape(table, "", (), (), at=name).copy, None)

    @property
    def log_folder(self) -> Path:
        return (self.staging or self.folder / "staging") / (self.renamed or self.name)

    def check_at_rest(self) -> list[Finding]:
        """The invariants while no run is active: every table is caught up and no work is unfinished."""
        self.read_commits()
        histories = [History(shape, self.histories[shape.copy]) for shape in self.copies]
        log = read_log(self.log_folder)
        return list(must.at_rest(log, read_store(self.folder / "state.db", self.renamed or self.name), histories))

    def check(self) -> list[Finding]:
        """The invariants at any moment."""
        before = {table: len(commits) for table, commits in self.histories.items()}
        with psycopg.connect(self.dsn, autocommit=True) as source:
            slot = acknowledged(source, self.slot)
            self.read_commits()
            log = read_log(self.log_folder)
            store = read_store(self.folder / "state.db", self.renamed or self.name)
            record_commits(source, self.name, self.ledger)
        shapes = self.copies
        commit_files = {
            path: sha for shape in shapes for path, sha in self.readers[shape.at].commit_files(shape).items()
        }
        histories = [History(shape, self.histories[shape.copy]) for shape in shapes]
        fresh = [History(h.shape, h.commits[_last_own(h.commits[: before.get(h.shape.copy, 0)]) :]) for h in histories]
        new = [number for number in log.windows if number not in self.manifests]
        found: list[Finding] = []
        for history, whole in zip(fresh, histories, strict=True):
            found += must.states_of_the_source(_with_past(history, whole), self.ledger)
            for check in (must.no_key_twice, must.never_back, must.order_per_key, must.paused_stays):
                found += check(history)
            found += (
                history.found("nothing referenced is deleted", f"{path} is gone")
                for path in self.readers[history.shape.at].missing_files(history.shape)
            )
        found += must.sealed_windows(log, self.manifests)
        found += must.never_replaced(commit_files, self.commit_files)
        found += must.accounted(log, self.ledger, histories, new)
        found += must.nothing_needed_is_gone(log, histories, list(log.windows))
        found += must.acknowledged_last(log, histories, slot)
        found += must.store_behind(store, histories)
        found += self._secrets()
        self.manifests |= {number: window.sha256 for number, window in log.windows.items()}
        self.commit_files |= commit_files
        return found

    def _secrets(self) -> list[Finding]:
        found = []
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                if any(secret.encode() in content for secret in self.secrets):
                    found.append(Finding("no secret in any artefact", "files", str(path)))
        texts = [text for reader in self.readers.values() for text in reader.texts()]
        if any(secret in text for text in texts for secret in self.secrets):
            found.append(Finding("no secret in any artefact", "target", "a control row"))
        return found


def _last_own(commits: Sequence[Commit]) -> int:
    """The index of the last commit with a record, with which the next one is compared."""
    return max((number for number, one in enumerate(commits) if one.record is not None), default=0)


def _with_past(fresh: History, whole: History) -> History:
    """A commit of another writer is compared with all earlier states, which needs the whole history."""
    return whole if any(one.record is None and not one.foreign for one in fresh.commits) else fresh


def source_rows(connection: psycopg.Connection[Any], shape: Shape) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{name}"' for name in shape.columns)
    return connection.execute(f"SELECT {names} FROM {shape.table}".encode()).fetchall()
