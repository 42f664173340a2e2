"""Control records are removed, except those that a cursor, a restore or a fence needs: random histories, no JVM."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, carry_folder
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.delta.time_travel import log_files, oldest_version
from tests.spark.test_delta_cursor import TABLE, TARGET, commit, control, foreign_append

STEPS = ("merge", "merge", "merge", "fence", "foreign", "restore", "expire", "clean")


class History:
    """One table of ours, and its commits."""

    def __init__(self, folder: Path, random: Random) -> None:
        log = ChangeLog(LocalStore(str(folder / "staging")))
        self.tables = DeltaTarget(Target("delta", str(folder / "lake")), ConnectionInfo(), "shop", log)
        self.random = random
        self.steps: list[str] = []
        commit(self.tables, control(1, 1), 1)

    def opened(self) -> DeltaTable:
        return DeltaTable(self.tables.locate(TARGET))

    def oldest(self) -> int:
        version = oldest_version(log_files(self.opened()))
        assert version is not None
        return version

    def step(self, kind: str) -> None:
        self.steps.append(kind)
        getattr(self, kind)()

    def merge(self) -> None:
        current = self.tables.state(TABLE, TARGET)
        assert current.control is not None
        path = f"{carry_folder(TABLE, uuid.uuid4().hex)}/0.parquet"
        self.tables.log.store.write(path, b"carried")
        carry = CarryOver((DataFile(path, 1, 7, ""),), {"parked": 1})
        record = replace(control(current.control.fence, current.control.window + 1), carry=carry)
        commit(self.tables, record, current.control.window)

    def fence(self) -> None:
        current = self.tables.state(TABLE, TARGET)
        assert current.control is not None
        self.tables.fence(TARGET, current, current.control.fenced(attempt="pause"))

    def foreign(self) -> None:
        foreign_append(self.tables)

    def restore(self) -> None:
        """By another client. The next run raises the fence above it, or copies again if the current commit of that
        version has left the history."""
        opened = self.opened()
        version = self.random.randint(self.oldest(), opened.version())
        self.steps.append(str(version))
        if version == opened.version():
            return
        opened.restore(version)
        if self.tables.state(TABLE, TARGET).control is None:
            commit(self.tables, control(self.tables.log.highest_fence(TABLE) + 1, 1), 1)
        else:
            self.fence()

    def expire(self) -> None:
        """Removes the commits before a checkpoint, as Delta does after a while."""
        opened = self.opened()
        opened.create_checkpoint()
        folder = Path(self.tables.locate(TARGET), "_delta_log")
        checkpoints = sorted({int(path.name[:20]) for path in folder.glob("*.checkpoint*.parquet")})
        cut = self.random.choice(checkpoints)
        for path in folder.glob("0*"):
            if int(path.name[:20]) < cut:
                path.unlink()

    def clean(self) -> None:
        log = self.tables.log
        before = self.tables.state(TABLE, TARGET), log.highest_fence(TABLE)
        log.remove_old_controls(TABLE, self.tables.oldest_token(TABLE, TARGET))
        assert (self.tables.state(TABLE, TARGET), log.highest_fence(TABLE)) == before, self.steps
        opened = self.opened()
        for version in range(self.oldest(), opened.version() + 1):
            opened.load_as_version(version)
            recorded = opened.transaction_version(self.tables.app_id(TABLE))
            record = log.control(TABLE, recorded) if recorded is not None else None
            assert record is not None, (version, self.steps)
            assert all(log.store.exists(file.path) for file in record.carry.files), (version, self.steps)


@pytest.mark.parametrize("seed", range(8))
def test_cleaning_keeps_every_needed_record(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    history = History(tmp_path, random)
    for _ in range(40):
        history.step(random.choice(STEPS))
    history.step("merge")
    history.opened().create_checkpoint()
    for path in Path(history.tables.locate(TARGET), "_delta_log").glob("0*"):
        if int(path.name[:20]) < history.opened().version():
            path.unlink()
    history.step("clean")
    assert len(history.tables.log.store.names(f"control/{TABLE}")) == 1, (
        "one record counts, and its fence is the highest"
    )
    assert len(history.tables.log.store.names(carry_folder(TABLE))) == 1
