"""A Parquet file on a full disk is closed and removed, and the error reports what failed and where."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.errors import StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.local_engine.copy import FileLayout, write_files
from airflow_cdc_provider.targets.delta.local_engine.data_file import write_rows
from spark_jobs.windows.record_files import RecordFile

ROWS = pa.table({"id": list(range(20_000))})
CHANGES = [ChangeRecord("t", "insert", "0", "s", key=str(Random(number).random())) for number in range(20_000)]
SIZES = (0, 3, 4, 1_000, 8_192, 20_000)
"""Bytes that still fit: none, the first ones, some of the rows."""


def rows(store: LocalStore) -> None:
    write_rows(store, "t", ROWS, ["id"])


def copy(store: LocalStore) -> None:
    write_files(store, "t", [ROWS], FileLayout(statistics_columns=("id",)))


def window(store: LocalStore) -> None:
    file = RecordFile(store, "t/one.parquet")
    try:
        file.write(CHANGES)
        file.close()
    except StagingUnavailable:
        file.discard()
        raise


WRITERS = pytest.mark.parametrize(
    ("write", "error"), [(rows, TargetUnavailable), (copy, TargetUnavailable), (window, StagingUnavailable)]
)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def open_files(folder: Path) -> list[str]:
    links = [Path("/proc/self/fd", one) for one in os.listdir("/proc/self/fd")]
    return [found for link in links if link.is_symlink() and (found := os.readlink(link)).startswith(str(folder))]


def remaining_files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()]


@WRITERS
@pytest.mark.parametrize("size", SIZES)
def test_a_file_without_room_leaves_nothing(
    tmp_path: Path, write: Callable[[LocalStore], None], error: type[Exception], size: int
) -> None:
    with room_for(size), pytest.raises(error, match="File too large") as caught:
        write(LocalStore(str(tmp_path)))
    assert str(tmp_path / "t") in str(caught.value)
    assert not open_files(tmp_path)
    assert not remaining_files(tmp_path)


@WRITERS
def test_a_file_without_room_for_its_last_bytes_leaves_nothing(
    tmp_path: Path, write: Callable[[LocalStore], None], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(error, match="No space left"):
        write(LocalStore(str(tmp_path)))
    assert not open_files(tmp_path)
    assert not remaining_files(tmp_path)
