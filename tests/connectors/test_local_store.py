"""Errors of the file system under a folder of the change log."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.staging.local_store import LocalStore

METHODS: dict[str, Callable[[LocalStore], object]] = {
    "url": lambda store: store.url("a/x"),
    "read": lambda store: store.read("a/x"),
    "exists": lambda store: store.exists("a/x"),
    "create": lambda store: store.create("a/y", b""),
    "write": lambda store: store.write("a/x", b""),
    "open_output": lambda store: store.open_output("a/y"),
    "open_input": lambda store: store.open_input("a/x"),
    "names": lambda store: store.names("a"),
    "files": lambda store: list(store.files("a")),
    "delete": lambda store: store.delete("a"),
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(str(tmp_path / "staging"))
    store.write("a/x", b"1")
    return store


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_what_the_file_system_refuses(
    store: LocalStore, method: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any, *_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as patched:
        for name in ("stat", "lstat", "scandir", "open"):
            patched.setattr(os, name, refuse)
        with pytest.raises(StagingUnavailable, match="STG010") as failed:
            METHODS[method](store)
    assert os.strerror(number) in failed.value.problems[0].found
    assert store.read("a/x") == b"1"


def test_a_folder_that_cannot_be_listed_is_not_left_out(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse_inner(path: Any) -> Any:
        if str(path).endswith("/a"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse_inner)
    with pytest.raises(StagingUnavailable, match="STG010"):
        list(store.files(""))


def test_a_file_that_is_removed_while_it_is_listed_is_left_out(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = os.walk

    def walk_with_more(*given: Any, **more: Any) -> Iterator[Any]:
        for folder, folders, names in walk(*given, **more):
            yield folder, folders, [*names, ".removed"]

    monkeypatch.setattr(os, "walk", walk_with_more)
    assert [file.path for file in store.files("")] == ["a/x"]
