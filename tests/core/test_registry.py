"""From a type name to its class: of this package, of another package, or an error with the available types."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.registry import load_class


def test_the_classes_of_this_package_are_found() -> None:
    assert all(load_class("source", kind, SOURCES).__name__ == SOURCES[kind].partition(":")[2] for kind in SOURCES)


def test_a_type_of_another_package_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "extra_package.py").write_text("class Queue: ...\n")
    about = tmp_path / "extra_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: brought-along\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[airflow_cdc_provider.sources]\nqueue = extra_package:Queue\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_class("source", "queue", SOURCES).__module__ == "extra_package"
    with pytest.raises(NotInstalled, match=r"postgres, .*queue.*did you mean 'queue'"):
        load_class("source", "queues", SOURCES)


def test_an_unknown_type_is_reported_with_the_available_ones() -> None:
    with pytest.raises(NotInstalled, match=r"ENV013 there is no source type abacus.*allowed: .*postgres"):
        load_class("source", "abacus", SOURCES)


def test_a_missing_library_is_reported_with_the_command_that_installs_it() -> None:
    with pytest.raises(
        NotInstalled, match=r"ENV010.*found: no package no_such_library.*airflow-cdc-provider\[abacus\]"
    ):
        load_class("source", "abacus", {"abacus": "no_such_library.source:Abacus"})
