"""A folder of events whose writer may have stopped."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source

HOUR_S = 3600.0


def source(folder: Path, max_silence_s: float | None, **more: str) -> FilesSource:
    options = {"format": "debezium", "location": str(folder), "topic_prefix": "p", "max_silence": max_silence_s, **more}
    return FilesSource(Source("files", options=options), ConnectionInfo(), "shop")


def silent_since(folder: Path, max_silence_s: float | None) -> datetime | None:
    return source(folder, max_silence_s).silent_since()


def write(file: Path, age_s: float) -> None:
    file.write_text("{}")
    os.utime(file, (time.time() - age_s,) * 2)


def test_a_folder_without_new_files_shows_that_its_writer_is_silent(tmp_path: Path) -> None:
    assert silent_since(tmp_path, HOUR_S) is None, "nothing was ever written"
    write(tmp_path / "one.json", 3 * HOUR_S)
    since = silent_since(tmp_path, 2 * HOUR_S)
    assert since is not None and abs(time.time() - 3 * HOUR_S - since.timestamp()) < HOUR_S
    assert silent_since(tmp_path, None) is None, "nothing is known of a feed without `max_silence`"
    write(tmp_path / "two.json", HOUR_S)
    assert silent_since(tmp_path, 2 * HOUR_S) is None


def test_check_warns_that_a_writer_without_a_limit_may_stop_unnoticed(tmp_path: Path) -> None:
    (warning,) = source(tmp_path, None).warnings()
    assert warning.code == "SRC135" and "heartbeats" in warning.do
    assert source(tmp_path, HOUR_S).warnings() == []
    of_datastream = {"format": "datastream", "stream": "projects/p/locations/l/streams/s"}
    assert source(tmp_path, None, **of_datastream).warnings() == []
