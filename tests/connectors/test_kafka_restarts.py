"""The end of a window before a new snapshot, and its holes."""

from __future__ import annotations

from airflow_cdc_provider.connectors.source_features import Restart
from airflow_cdc_provider.connectors.transports.kafka.new_snapshots import cut_before
from airflow_cdc_provider.connectors.transports.kafka.positions import Channel, Span
from airflow_cdc_provider.core.log.change_log import EXPIRED, RESTART, Manifest, TableSlice
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from spark_jobs.windows.restarts import RestartedWindow

A0, A1, B0 = Channel("a", 0), Channel("a", 1), Channel("b", 0)
SPANS = {A0: Span(0, 90, "x"), A1: Span(0, 90, "x"), B0: Span(0, 90, "y")}
LO = {"a/0": "5 x", "a/1": "5 x", "b/0": "50 y", "other/0": "1 z"}
LIMIT = {"a/0": "20 x", "a/1": "90 x", "b/0": "60 y", "other/0": "9 z"}


def test_every_partition_is_read_up_to_the_new_snapshot_also_one_that_lags() -> None:
    cut = cut_before(LO, LIMIT, {A0: 40, A1: 7, B0: 50}, SPANS, ())
    assert cut.limit == {"a/0": "40 x", "a/1": "7 x", "b/0": "50 y", "other/0": "9 z"}
    assert cut.topics == {"a", "b"}


def test_an_offset_beyond_the_new_snapshot_is_kept() -> None:
    cut = cut_before(LO, LIMIT, {A0: 40, B0: 49}, SPANS, ())
    assert cut.limit["b/0"] == "60 y" and cut.topics == {"a"}
    assert cut_before(LO, LIMIT, {A0: 40}, SPANS, ["a"]).topics == frozenset()


def test_a_table_that_no_first_message_shows_stops_where_its_topic_may_start_again() -> None:
    """Whether the new snapshot contains it is unknown: it must not be read from there on."""
    began = SourceSnapshot("srv", "all", "2", 20, whole=True)
    before = SourceSnapshot("srv", "all", "1", 10, ended=True, whole=True)
    restart = Restart({"all/0": "20"}, {"all": frozenset({"d.t"}), "": frozenset({"d.u"})})
    tables = {table: TableSlice("") for table in ("d.t", "d.u", "d.v")}
    manifest = Manifest("log", 8, 1, {}, {}, "", "a", "", tables)
    marked = RestartedWindow.of(began, restart, [before], [began], {}).mark(manifest)
    assert {hole.table: hole.kind for hole in marked.holes} == {"d.t": RESTART, "d.u": EXPIRED}
    assert {snapshot.topic for snapshot in marked.snapshots} == {"all"}
