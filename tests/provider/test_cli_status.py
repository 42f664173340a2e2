"""``airflow cdc status``: states, rows, lag, and what the source keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_cdc_provider.connectors.source import RetainedLog
from airflow_cdc_provider.control.replicator import utc_now
from airflow_cdc_provider.core.decisions.freshness import freshness
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable, TargetUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.targets.target import TargetState
from tests.provider.small_world import LakeOfFiles, World, schema
from tests.provider.typed import Said, replicated

SINCE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_status_shows_what_was_last_seen_of_every_table(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    body = cdc("status", "shop", "--json").body
    assert [(t["table"], t["state"], t["window"], t["rows"]) for t in body["tables"]] == [
        ("public.a", "replicating", 1, 10),
        ("public.b", "replicating", 1, 10),
    ]
    assert "public.b" in cdc("status").out


def test_status_says_as_of_when_rows_were_counted_that_have_changed_since(
    cdc: Callable[..., Said], world: World
) -> None:
    replicated(world)
    before = cdc("status", "shop", "--json").body["tables"][0]
    assert (before["rows"], before["rows_current"]) == (10, True)
    world.source.change("public.a")
    world.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["rows"], one["rows_current"], one["rows_at"]) == (10, False, before["rows_at"])
    assert (other["rows"], other["rows_current"]) == (10, True), "nothing of it has changed"
    assert f"10 at {before['rows_at'][:19]}" in cdc("status", "shop").out


def test_status_shows_rows_as_they_are_where_the_target_can_tell(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(world)
    monkeypatch.setattr(LakeOfFiles, "row_count", lambda self, table, held: 187)
    world.source.change("public.a")
    world.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["rows"], one["rows_current"], other["rows"]) == (187, True, 10)

    def silent(self: object, table: str, held: TargetState) -> int:
        raise TargetUnavailable(Problem("TGT010", "the lake does not answer"))

    monkeypatch.setattr(LakeOfFiles, "row_count", silent)
    world.source.change("public.a")
    world.run("r3")
    one = cdc("status", "shop", "--json").body["tables"][0]
    assert (one["rows"], one["rows_current"]) == (187, False)
    monkeypatch.setattr(LakeOfFiles, "row_count", lambda self, table, held: 189)
    world.run("r4")
    world.source.change("public.a")
    world.run("r5")
    assert cdc("status", "shop", "--json").body["tables"][0]["rows"] == 189


def test_status_tells_the_lag_and_what_is_late(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    path = world.folder / "dags/replicators/shop.yaml"
    table = cdc("status", "shop", "--json").body["tables"][0]
    assert 0 <= table["lag_s"] < 600 and table["late"] is False
    rows = world.state.tables("shop")
    world.state.change_tables("shop", lambda _: [replace(rows["public.a"], fresh_at="2026-01-01T00:00:00+00:00")])
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert one["lag_s"] > 1e6 and (one["late"], other["late"]) == (True, False)
    assert " s, late" in cdc("status", "shop").out
    path.write_text(path.read_text() + "freshness: 3650d\n")
    assert cdc("status", "shop", "--json").body["tables"][0]["late"] is False


def test_a_run_tells_which_tables_are_late(world: World) -> None:
    world.definition = replace(world.definition, freshness=timedelta(hours=1))
    world.run("r1")
    assert not any("is late" in line for line in world.told)
    world.definition = replace(world.definition, freshness=timedelta())
    world.run("r2")
    for table in ("public.a", "public.b"):
        assert any(f"{table} is late" in line and "freshness allows 0d" in line for line in world.told)


def test_the_lag_of_a_source_that_is_read_with_a_delay_holds_that_delay(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table in which nothing happens is no fresher: what was committed within the delay is not in its copy."""
    behind = timedelta(hours=1)
    monkeypatch.setattr("tests.provider.small_world.FileSource.capture_delay", lambda self: behind, raising=False)
    path = world.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text() + "freshness: 30m\n")
    replicated(world)
    idle, moved = (world.run("r2"), world.source.change("public.a"), world.run("r3"))[::2]
    for closing in (idle, moved):
        lags = [freshness(row, behind, utc_now()).lag_s for row in closing.rows]
        assert [lag is not None and 3600 <= lag < 4200 for lag in lags] == [True, True]
    assert [one["late"] for one in cdc("status", "shop", "--json").body["tables"]] == [True, True]


def test_a_source_that_does_not_answer_lets_its_tables_grow_late(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    before = cdc("status", "shop", "--json").body["tables"]
    world.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        world.open("r2")
    world.close("r2")
    after = cdc("status", "shop", "--json").body["tables"]
    assert [one["fresh_at"] for one in after] == [one["fresh_at"] for one in before]
    assert all(new["lag_s"] > old["lag_s"] for new, old in zip(after, before, strict=True))


def test_status_shows_what_the_source_keeps_for_us(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(world)
    assert cdc("status", "shop", "--json").body["kept_bytes"] == {"shop": None}, "this source keeps nothing"
    monkeypatch.setattr(
        "tests.provider.small_world.FileSource.retained_log",
        lambda self, at: RetainedLog(3 << 20, SINCE),
        raising=False,
    )
    assert cdc("status", "shop", "--json").body["kept_bytes"] == {"shop": 3 << 20}
    assert cdc("status", "shop", "--json").body["kept_since"] == {"shop": SINCE.isoformat()}
    assert "shop: the source retains 3.0 MiB of log for it, since 2026-01-02 03:04 UTC" in cdc("status", "shop").out

    def down(self: object, at: object) -> RetainedLog:
        raise SourceUnavailable(Problem("SRC001", "the source does not answer"))

    monkeypatch.setattr("tests.provider.small_world.FileSource.retained_log", down)
    said = cdc("status", "shop")
    assert (said.code, "unknown: the source does not answer" in said.out, "public.b" in said.out) == (0, True, True)


def test_a_replicating_table_has_no_reason(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    control = world.control("public.a")
    told = replace(control.state, reason="first copy")
    world.commit("public_a", replace(control, fence=control.fence + 1, state=told))
    world.source.change("public.a")
    world.run("r2")
    (reason,) = {one["reason"] for one in cdc("status", "shop", "--json").body["tables"]}
    assert reason == ""
    cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance")
    assert cdc("status", "shop", "--json").body["tables"][0]["reason"] == "maintenance"


def test_status_tells_which_copies_catch_up(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    state = world.replicator.state
    row = state.tables("shop")["public.a"]
    assert row.control is not None
    state.change_tables("shop", lambda _: [replace(row, control=replace(row.control, high=9))])
    assert "catching up until window 9" in cdc("status", "shop").out
    assert [table["catching_up"] for table in cdc("status", "shop", "--json").body["tables"]] == [True, False]


def test_a_table_leaves_out_columns_that_are_empty_and_plain_rows_do_not(
    cdc: Callable[..., Said], world: World
) -> None:
    replicated(world)
    table, plain = cdc("status", "shop").out, cdc("status", "shop", "--output", "plain").out
    assert "replicating" in table and "remedy" not in table and "remedy" in plain
    cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance")
    assert "reason" in cdc("status", "shop").out


def test_status_before_the_first_run_says_so(cdc: Callable[..., Said], world: World) -> None:
    assert "no tables yet" in cdc("status", "shop").out


def test_a_table_that_a_pattern_finds_no_more_is_told_as_gone_at_the_source(
    cdc: Callable[..., Said], world: World
) -> None:
    replicated(world)
    world.source.write(tables=[to_plain(schema("public.a"))])
    world.run("r2")
    (row,) = [one for one in cdc("status", "shop", "--json").body["tables"] if one["table"] == "public.b"]
    assert row["state"] == "dropped"
    assert "the source no longer lists it" in row["reason"] and "public.*" in row["reason"] and "grant" in row["remedy"]
    world.definition = replace(world.definition, tables=(TableRule("public.b"),))
    world.source.write(tables=[to_plain(schema(table)) for table in ("public.a", "public.b")])
    world.run("r3")
    (row,) = [one for one in cdc("status", "shop", "--json").body["tables"] if one["table"] == "public.a"]
    assert (row["state"], row["reason"]) == ("dropped", "the YAML no longer selects it")


def test_status_shows_the_engine_of_the_last_commit(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    world.source.change("public.a")
    world.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["engine"], other["engine"]) == ("local: 1 rows", "")
    assert "local: 1 rows" in cdc("status", "shop").out
