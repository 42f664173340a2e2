"""``airflow cdc status``: states, rows, lag, and the log that the source retains."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_cdc_provider.core.decisions.freshness import freshness
from airflow_cdc_provider.core.errors import SourceUnavailable, TargetUnavailable
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.metrics import LAG
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.attainment import Attainment
from airflow_cdc_provider.core.times import parse_utc, utc_now
from airflow_cdc_provider.targets.target import TargetState
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import LoggedFileTarget, RunHarness, schema

SINCE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_status_shows_the_last_known_state_of_every_table(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    body = cdc("status", "shop", "--json").body
    assert [(t["table"], t["state"], t["window"], t["rows"]) for t in body["tables"]] == [
        ("public.a", "replicating", 1, 10),
        ("public.b", "replicating", 1, 10),
    ]
    assert "public.b" in cdc("status").out


def test_status_shows_the_time_of_an_outdated_row_count(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    before = cdc("status", "shop", "--json").body["tables"][0]
    assert (before["rows"], before["rows_current"]) == (10, True)
    harness.source.change("public.a")
    harness.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["rows"], one["rows_current"], one["rows_at"]) == (10, False, before["rows_at"])
    assert (other["rows"], other["rows_current"]) == (10, True), "the table has not changed"
    assert f"10 at {before['rows_at'][:19]}" in cdc("status", "shop").out


def test_status_shows_current_row_counts_of_targets_that_have_them(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(harness)
    monkeypatch.setattr(LoggedFileTarget, "row_count", lambda self, table, state: 187)
    harness.source.change("public.a")
    harness.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["rows"], one["rows_current"], other["rows"]) == (187, True, 10)

    def silent(self: object, table: str, state: TargetState) -> int:
        raise TargetUnavailable.of("TGT010", "the lake does not answer")

    monkeypatch.setattr(LoggedFileTarget, "row_count", silent)
    harness.source.change("public.a")
    harness.run("r3")
    one = cdc("status", "shop", "--json").body["tables"][0]
    assert (one["rows"], one["rows_current"]) == (187, False)
    monkeypatch.setattr(LoggedFileTarget, "row_count", lambda self, table, state: 189)
    harness.run("r4")
    harness.source.change("public.a")
    harness.run("r5")
    assert cdc("status", "shop", "--json").body["tables"][0]["rows"] == 189


def test_status_shows_the_lag_and_late_tables(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    path = harness.folder / "dags/replicators/shop.yaml"
    table = cdc("status", "shop", "--json").body["tables"][0]
    assert 0 <= table["lag_s"] < 600 and table["late"] is False
    rows = harness.state.tables("shop")
    harness.state.change_tables("shop", lambda _: [replace(rows["public.a"], fresh_at="2026-01-01T00:00:00+00:00")])
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert one["lag_s"] > 1e6 and (one["late"], other["late"]) == (True, False)
    assert " s, late" in cdc("status", "shop").out
    path.write_text(path.read_text() + "freshness: 3650d\n")
    assert cdc("status", "shop", "--json").body["tables"][0]["late"] is False


def test_attainment_is_measured_at_the_end_of_runs_and_a_missed_objective_is_named(
    cdc: CommandLine, harness: RunHarness
) -> None:
    replicated(harness)
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text() + "objective: 99.5%\n")
    assert cdc("status", "shop", "--json").body["tables"][0]["attainment"] is None
    hours_ago = [(datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="milliseconds") for hours in range(5)]
    row = replace(harness.state.tables("shop")["public.a"], fresh_at=hours_ago[3])
    aged = replace(row, attainment=Attainment(hours_ago[4], hours_ago[3]))
    harness.state.change_tables("shop", lambda _: [aged])
    harness.source.change("public.a")
    harness.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert one["attainment"] == pytest.approx(0.5, abs=0.01) and one["meets_objective"] is False
    assert other["attainment"] == 1 and other["meets_objective"] is True
    assert "public.a was not late in 5" in cdc("status", "shop").out
    assert "its objective is 99.5%" in cdc("status", "shop").out


def test_a_run_logs_late_tables(harness: RunHarness) -> None:
    harness.definition = replace(harness.definition, freshness=timedelta(hours=1))
    harness.run("r1")
    assert not any("is late" in line for line in harness.log_lines)
    harness.definition = replace(harness.definition, freshness=timedelta())
    harness.run("r2")
    for table in ("public.a", "public.b"):
        assert any(f"{table} is late" in line and "freshness allows 0d" in line for line in harness.log_lines)


def test_the_lag_of_a_source_that_is_read_with_a_delay_includes_the_delay(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle table is no fresher: commits within the delay are not in its copy."""
    behind = timedelta(hours=1)
    monkeypatch.setattr("tests.provider.run_harness.FileSource.capture_delay", lambda self: behind, raising=False)
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text() + "freshness: 30m\n")
    replicated(harness)
    idle, moved = (harness.run("r2"), harness.source.change("public.a"), harness.run("r3"))[::2]
    for closing in (idle, moved):
        lags = [freshness(row, behind, utc_now()).lag_s for row in closing.rows]
        assert [lag is not None and 3600 <= lag < 4200 for lag in lags] == [True, True]
    assert [one["late"] for one in cdc("status", "shop", "--json").body["tables"]] == [True, True]


@pytest.mark.parametrize("ahead_s", [-600, 0, 600])
@pytest.mark.parametrize("cut", ["limit", "size"])
def test_a_wrong_clock_of_the_worker_does_not_change_the_lag(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, ahead_s: int, cut: str
) -> None:
    """Of a copy that has everything, and of one that has all up to a commit."""
    monkeypatch.setattr("airflow_cdc_provider.state.store.now", lambda connection: time.time() + ahead_s)
    replicated(harness)
    harness.source.change("public.a")
    closing = harness.run("r2", cut=cut)
    lags = [sample.value for sample in closing.samples if sample.metric is LAG]
    assert len(lags) == 2 and all(0 <= lag < 60 for lag in lags)
    for row in closing.rows:
        assert abs((datetime.now(UTC) - parse_utc(row.fresh_at)).total_seconds()) < 60, "by the clock of the source"
        assert row.clock_ahead_s == pytest.approx(-ahead_s, abs=60)
    assert all(0 <= one["lag_s"] < 60 for one in cdc("status", "shop", "--json").body["tables"])


def test_the_copies_of_a_source_whose_writer_is_silent_age_from_its_last_sign_on(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent: list[datetime | None] = [None]
    monkeypatch.setattr("tests.provider.run_harness.FileSource.silent_since", lambda self: silent[0], raising=False)
    replicated(harness)
    fresh = {row.table: row.fresh_at for row in harness.state.tables("shop").values()}
    silent[0] = datetime.now(UTC) - timedelta(hours=1)
    assert {row.table: row.fresh_at for row in harness.run("r2").rows} == fresh, "they are no older than before"
    silent[0] = None
    assert all(row.fresh_at > fresh[row.table] for row in harness.run("r3").rows)


def test_the_lag_of_tables_grows_while_their_source_does_not_answer(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    before = cdc("status", "shop", "--json").body["tables"]
    harness.source.write(up=False)
    with pytest.raises(SourceUnavailable):
        harness.open("r2")
    harness.close("r2")
    after = cdc("status", "shop", "--json").body["tables"]
    assert [one["fresh_at"] for one in after] == [one["fresh_at"] for one in before]
    assert all(new["lag_s"] > old["lag_s"] for new, old in zip(after, before, strict=True))


def test_status_shows_the_log_that_the_source_retains(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(harness)
    assert cdc("status", "shop", "--json").body["kept_bytes"] == {"shop": None}, "this source retains no log"
    monkeypatch.setattr(
        "tests.provider.run_harness.FileSource.retained_log",
        lambda self, at: RetainedLog(3 << 20, SINCE),
        raising=False,
    )
    assert cdc("status", "shop", "--json").body["kept_bytes"] == {"shop": 3 << 20}
    assert cdc("status", "shop", "--json").body["kept_since"] == {"shop": SINCE.isoformat()}
    assert "shop: the source retains 3.0 MiB of log for it, since 2026-01-02 03:04 UTC" in cdc("status", "shop").out

    def down(self: object, at: object) -> RetainedLog:
        raise SourceUnavailable.of("SRC001", "the source does not answer")

    monkeypatch.setattr("tests.provider.run_harness.FileSource.retained_log", down)
    result = cdc("status", "shop")
    assert (result.code, "unknown: the source does not answer" in result.out, "public.b" in result.out) == (
        0,
        True,
        True,
    )


def test_a_replicating_table_has_no_reason(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    control = harness.control("public.a")
    state = replace(control.state, reason="first copy")
    harness.commit("public_a", replace(control, fence=control.fence + 1, state=state))
    harness.source.change("public.a")
    harness.run("r2")
    (reason,) = {one["reason"] for one in cdc("status", "shop", "--json").body["tables"]}
    assert reason == ""
    cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance")
    assert cdc("status", "shop", "--json").body["tables"][0]["reason"] == "maintenance"


def test_status_shows_copies_that_catch_up(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    state = harness.replicator.state
    row = state.tables("shop")["public.a"]
    assert row.control is not None
    state.change_tables("shop", lambda _: [replace(row, control=replace(row.control, high=9))])
    assert "catching up until window 9" in cdc("status", "shop").out
    assert [table["catching_up"] for table in cdc("status", "shop", "--json").body["tables"]] == [True, False]


def test_the_table_format_omits_empty_columns_and_the_plain_format_does_not(
    cdc: CommandLine, harness: RunHarness
) -> None:
    replicated(harness)
    table, plain = cdc("status", "shop").out, cdc("status", "shop", "--output", "plain").out
    assert "replicating" in table and "remedy" not in table and "remedy" in plain
    cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance")
    assert "reason" in cdc("status", "shop").out


def test_status_before_the_first_run_shows_no_tables(cdc: CommandLine, harness: RunHarness) -> None:
    assert "no tables yet" in cdc("status", "shop").out


def test_a_table_that_no_longer_matches_its_pattern_is_dropped_with_the_reason(
    cdc: CommandLine, harness: RunHarness
) -> None:
    replicated(harness)
    harness.source.write(tables=[to_plain(schema("public.a"))])
    harness.run("r2")
    (row,) = [one for one in cdc("status", "shop", "--json").body["tables"] if one["table"] == "public.b"]
    assert row["state"] == "dropped"
    assert "the source no longer lists it" in row["reason"] and "public.*" in row["reason"] and "grant" in row["remedy"]
    harness.definition = replace(harness.definition, tables=(TableRule("public.b"),))
    harness.source.write(tables=[to_plain(schema(table)) for table in ("public.a", "public.b")])
    harness.run("r3")
    (row,) = [one for one in cdc("status", "shop", "--json").body["tables"] if one["table"] == "public.a"]
    assert (row["state"], row["reason"]) == ("dropped", "the YAML no longer selects it")


def test_status_shows_the_engine_of_the_last_commit(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.run("r2")
    one, other = cdc("status", "shop", "--json").body["tables"]
    assert (one["engine"], other["engine"]) == ("local: 1 rows", "")
    assert "local: 1 rows" in cdc("status", "shop").out


def test_status_and_the_run_name_the_withheld_columns_of_a_sensitive_table(
    cdc: CommandLine, harness: RunHarness
) -> None:
    rule = TableRule("public.*", sensitive=True)
    harness.definition = replace(harness.definition, tables=(rule,))
    replicated(harness)
    assert "new columns" not in cdc("status", "shop").out
    first, other = (schema(table) for table in harness.tables)
    wider = replace(first, columns=(*first.columns, replace(first.columns[1], name="ssn")))
    harness.source.write(tables=[to_plain(wider), to_plain(other)])
    harness.run("r2")
    line = "public.a: new columns of the source are not copied until the YAML names them: ssn"
    assert [text for text in harness.log_lines if line in text and "`plain: [ssn]`" in text]
    assert f"shop: {line}" in cdc("status", "shop").out
    assert [one["withheld"] for one in cdc("status", "shop", "--json").body["tables"]] == [["ssn"], []]
    harness.definition = replace(harness.definition, tables=(replace(rule, columns=Columns(exclude=("ssn",))),))
    harness.run("r3")
    assert "new columns" not in cdc("status", "shop").out
