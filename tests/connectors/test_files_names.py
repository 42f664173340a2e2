"""Names and links in a folder of event files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from tests.blocks import unpacked as with_records
from tests.connectors.test_files_source import Feed, event_ids, line, messages
from tests.connectors.test_files_source import feed as feed


@pytest.mark.parametrize("link", ["a/link.jsonl", "b"])
def test_links_in_the_folder_are_refused_with_their_paths(feed: Feed, tmp_path: Path, link: str) -> None:
    lines = "\n".join(map(line, messages()))
    feed.write("a/1.jsonl", lines)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jsonl").write_text(lines)
    (feed.folder / "a/_being_written").symlink_to(outside)
    assert len(list(feed.source.folder.files())) == 1
    (feed.folder / link).symlink_to(outside if link == "b" else outside / "secret.jsonl")
    with pytest.raises(CheckFailed, match=rf"SRC079 .*where: {feed.folder} \| found: {link} \|"):
        feed.source.status(feed.source.open_stream([]), [])
    (problem,) = feed.source.check([])
    assert problem.code == "SRC079"


def test_a_file_replaced_by_a_link_before_it_is_read_is_not_read(feed: Feed, tmp_path: Path) -> None:
    feed.write("a/1.jsonl", "{}")
    (tmp_path / "secret").write_text("secret")
    (feed.folder / "a/1.jsonl").unlink()
    (feed.folder / "a/1.jsonl").symlink_to(tmp_path / "secret")
    (feed.folder / "linked").symlink_to(tmp_path)
    for path in ("a/1.jsonl", "linked/secret", "../secret", str(tmp_path / "secret")):
        with pytest.raises(CheckFailed, match="SRC079"):
            feed.source.folder.read_chunks(path)
    assert feed.source.folder.read_chunks("a/2.jsonl") is None


def test_the_folder_itself_may_be_a_link_and_an_unmounted_folder_leaves_no_hole(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "events").symlink_to(tmp_path / "disk")
    feed = Feed(tmp_path / "events")
    feed.write("a/1.jsonl", "{}")
    (file,) = feed.source.folder.files()
    pieces = feed.source.folder.read_chunks(file.path)
    assert pieces is not None and b"".join(pieces) == b"{}"
    (tmp_path / "events").unlink()
    with pytest.raises(SourceUnavailable, match="SRC074"):
        feed.source.folder.read_chunks(file.path)


def test_a_file_is_the_same_wherever_its_folder_is_mounted(feed: Feed) -> None:
    """A mounted file system gives a file another inode on each host."""
    feed.write("1.jsonl", "\n".join(map(line, messages())), age_s=300)
    tasks, lo = feed.tasks(), feed.source.open_stream([])
    limit = feed.source.status(lo, []).limit
    (feed.folder / "1.jsonl").rename(feed.folder / "old")
    shutil.copy2(feed.folder / "old", feed.folder / "1.jsonl")
    (feed.folder / "old").unlink()
    items = [
        item for split in feed.source.splits(lo, limit) for item in with_records(feed.source.read(split, tasks, 1))
    ]
    assert event_ids(items)
    (end,) = (item.position for item in items if isinstance(item, Boundary))
    assert not feed.source.status(end, []).has_changes


@pytest.mark.parametrize("name", ["orders#1", "1.jsonl#2", "line\nbreak.jsonl"])
def test_a_file_of_any_name_is_read(feed: Feed, name: str) -> None:
    feed.write(name, "\n".join(map(line, messages())))
    items, _ = feed.window(feed.source.open_stream([]), feed.tasks())
    assert event_ids(items)


def test_a_name_that_is_no_text_is_refused(feed: Feed) -> None:
    feed.write("1.jsonl", "{}")
    Path(os.fsdecode(os.fsencode(feed.folder) + b"/b\xff.jsonl")).write_text("{}")
    with pytest.raises(CheckFailed, match=r"SRC079 .*found: b\\xff.jsonl"):
        feed.source.status(feed.source.open_stream([]), [])


def test_an_empty_file_has_no_change(feed: Feed) -> None:
    feed.write("orders/1.jsonl", "")
    assert not feed.source.status(feed.source.open_stream([]), []).has_changes
