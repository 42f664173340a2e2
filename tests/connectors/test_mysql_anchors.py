"""The anchor of a copy of MySQL proper, of a server that answers as the test says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.mysql import copy
from airflow_cdc_provider.connectors.sources.mysql.catalog import BinlogEnd, ServerInfo
from airflow_cdc_provider.connectors.sources.mysql.positions import position_of
from airflow_cdc_provider.core.errors import SourceUnavailable

CLIENT: Any = SimpleNamespace(address="db")
SEALED = position_of("binlog.000003", 400, "6c201a74-ea99-11f1-b991-02fc00000001:7")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked, in order. The binlog ends later with each question."""
    asked = list[str]()

    def end(*_: object) -> BinlogEnd:
        asked.append("end")
        return BinlogEnd("binlog.000003", 899 + len(asked))

    monkeypatch.setattr(copy, "read_server", lambda _: ServerInfo("8.4.7", {}))
    monkeypatch.setattr(copy, "require_commit_order", lambda *_: asked.append("commit order"))
    monkeypatch.setattr(copy, "wait_for_logged", lambda *_: asked.append("all visible"))
    monkeypatch.setattr(copy, "read_binlog_end", end)
    return asked


@pytest.mark.parametrize("sealed", [{}, SEALED])
def test_the_anchor_of_mysql_is_the_end_of_its_binlog_once_all_before_it_is_visible(
    steps: list[str], sealed: dict[str, str]
) -> None:
    """The end of the last window may be an hour old: an ALTER since then would block the table with its first copy."""
    assert copy.anchor_of(None, CLIENT, sealed) == position_of("binlog.000003", 901)
    assert steps == ["commit order", "end", "all visible"]


@pytest.mark.usefixtures("steps")
def test_a_server_whose_binlog_ends_before_the_last_window_is_not_copied() -> None:
    with pytest.raises(SourceUnavailable, match="CPY007"):
        copy.anchor_of(None, CLIENT, position_of("binlog.000004", 4))
