"""Folders with more files than a window: how many are in memory at once, and how often the store is listed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.transports.files import file_splits, listing
from airflow_cdc_provider.connectors.transports.files.file_splits import files_of, read_status, split_window
from airflow_cdc_provider.connectors.transports.files.folder import File
from airflow_cdc_provider.connectors.transports.files.listing import Listing
from airflow_cdc_provider.connectors.transports.files.positions import START, position_of

FILES, WINDOW = 2_000, 10


class Listed:
    """``files`` files, one per millisecond. ``listings``: how often they were listed. ``most``: how many of them were
    in memory at once."""

    def __init__(self, with_keys: bool = False, files: int = FILES) -> None:
        self._with_keys, self._files = with_keys, files
        self._alive: weakref.WeakSet[File] = weakref.WeakSet()
        self.listings = 0
        self.most = 0

    def __iter__(self) -> Iterator[File]:
        self.listings += 1
        for number in range(self._files):
            file = File(self._path(number), 1, number + 1, "")
            self._alive.add(file)
            self.most = max(self.most, len(self._alive))
            yield file

    def _path(self, number: int) -> str:
        if not self._with_keys:
            return f"t/{number}.avro"
        return f"t/{number // 2}{'.keys' if number % 2 else ''}.avro"


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_splits, "WINDOW_FILES", WINDOW)


@pytest.mark.parametrize(("with_keys", "most", "listings"), [(False, WINDOW + 2, 1), (True, 4 * WINDOW, 3)])
def test_no_more_files_than_those_of_a_window_are_in_memory(with_keys: bool, most: int, listings: int) -> None:
    start = position_of(START)
    listed = Listed(with_keys)
    status = read_status(start, listed, now_ms=FILES, stable_ms=0, lateness_ms=1)
    assert status.has_changes
    assert listed.most <= most and listed.listings <= listings
    again = Listed(with_keys)
    planned = [file for split in split_window(start, status.limit, again) for file in files_of(split)]
    assert len(planned) == WINDOW and all(bool(file.keys) == with_keys for file in planned)
    assert again.most <= most and again.listings <= listings


@pytest.mark.nightly
def test_a_million_files_are_listed_once_and_a_window_of_them_is_in_memory() -> None:
    million, start = 1_000_000, position_of(START)
    listed = Listed(files=million)
    status = read_status(start, listed, now_ms=million, stable_ms=0, lateness_ms=1)
    assert status.has_changes and (listed.listings, listed.most) == (1, WINDOW + 2)


@pytest.mark.parametrize(("limit", "listings"), [(FILES, 1), (FILES - 1, 2)])
def test_few_files_are_listed_once_and_many_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, limit: int, listings: int
) -> None:
    monkeypatch.setattr(listing, "MAX_CACHED_FILES", limit)
    listed = Listed()
    files = Listing(lambda: listed)
    assert [sum(1 for _ in files) for _ in range(2)] == [FILES, FILES]
    assert listed.listings == listings
    assert len(listed._alive) == (FILES if listings == 1 else 0)
