"""Positions of a local folder that were written when the ETags of files had the numbers of their inodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore

from airflow_cdc_provider.connectors.transports.files.folder import File, Folder
from airflow_cdc_provider.connectors.transports.files.positions import START, FolderPosition
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo

LATENESS_MS = 3_600_000


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    return Folder(str(tmp_path), ConnectionInfo("files"))


def former(file: File, root: Path) -> File:
    return replace(file, tag=obstore.head(LocalStore(root), file.path)["e_tag"] or "", former_tag="")


def test_files_of_a_former_position_were_read(folder: Folder, tmp_path: Path) -> None:
    files = sorted(folder.files(), key=lambda file: file.path)
    position = START.after([former(file, tmp_path) for file in files], [], LATENESS_MS)
    assert all(former(file, tmp_path).id in position.read for file in files)
    assert [file.path for file in files if position.is_unread(file)] == []
    later = position.after([], files, LATENESS_MS)
    assert later.read == {file.id for file in files}, "the next position has the ids of now"
    (tmp_path / "b.json").write_text("{ }")
    assert [file.path for file in folder.files() if position.is_unread(file)] == ["b.json"]


def test_a_file_of_a_bucket_has_no_former_id() -> None:
    file = File("a.json", 2, 1, "tag")
    assert FolderPosition(0, frozenset({replace(file, tag="").id})).is_unread(file)
