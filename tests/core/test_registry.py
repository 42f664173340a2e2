"""From a type name to its class: ours, another package's, or an error that says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.registry import load_class


def test_our_own_classes_are_found() -> None:
    assert all(load_class("source", kind, SOURCES).__name__ == SOURCES[kind].partition(":")[2] for kind in SOURCES)


def test_a_type_of_another_package_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought_along.py").write_text("class Queue: ...\n")
    about = tmp_path / "brought_along-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: brought-along\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[airflow_cdc_provider.sources]\nqueue = brought_along:Queue\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_class("source", "queue", SOURCES).__module__ == "brought_along"
    with pytest.raises(NotInstalled, match=r"postgres, .*queue.*did you mean 'queue'"):
        load_class("source", "queues", SOURCES)


def test_an_unknown_type_is_named_with_those_there_are() -> None:
    with pytest.raises(NotInstalled, match=r"ENV013 there is no source type abacus.*allowed: .*postgres"):
        load_class("source", "abacus", SOURCES)


def test_a_library_that_is_missing_is_named_with_the_line_to_type() -> None:
    with pytest.raises(
        NotInstalled, match=r"ENV010.*found: no package no_such_library.*airflow-cdc-provider\[abacus\]"
    ):
        load_class("source", "abacus", {"abacus": "no_such_library.source:Abacus"})
