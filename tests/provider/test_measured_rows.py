"""What the end of a run measures of each table, and what of it can be made again from the change log."""

from __future__ import annotations

from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.costs import Cost, total
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness


def row(harness: RunHarness, table: str = "public.a") -> TableRow:
    return harness.state.tables("shop")[table]


def cost(harness: RunHarness, table: str = "public.a") -> Cost:
    return total(row(harness, table).costs.values())


def test_a_first_copy_costs_rows_and_is_no_change(harness: RunHarness) -> None:
    replicated(harness)
    assert row(harness).recent == {}
    assert cost(harness).rows == 10


def test_changes_and_their_bytes_are_counted_once_although_the_end_of_the_run_is_repeated(harness: RunHarness) -> None:
    replicated(harness)
    before = cost(harness)
    harness.source.change("public.a")
    harness.run("r2")
    once = row(harness)
    assert list(once.recent.values()) == [1]
    assert cost(harness).rows == before.rows + 1
    assert cost(harness).bytes > before.bytes
    assert row(harness, "public.b").recent == {}
    harness.close("r2")
    assert (row(harness).recent, row(harness).costs) == (once.recent, once.costs)
    assert harness.state.summaries(["shop"])["shop"].recent == once.recent


def test_seconds_and_what_the_target_bills_are_added_from_the_results_of_jobs(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    plan = harness.open("r2").plan
    harness.extract(plan)
    failed = TableResult(
        "public.a",
        Outcome.FAILING,
        counts={Operation.INSERT: 7},
        phases={"load": 1.25, "merge": 0.5},
        cost={"bytes_billed": 9},
    )
    before = cost(harness)
    harness.write_result("r2", "merge", StepKind.MERGE, [failed])
    harness.close("r2")
    assert cost(harness) == before + Cost(1.75, 0, 0, {"bytes_billed": 9})
    assert row(harness).recent == {}


def test_the_backlog_is_what_the_copy_does_not_have_yet(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.extract(harness.open("r2").plan)
    harness.close("r2", ["merge"])
    assert row(harness).backlog and row(harness, "public.b").backlog == 0
    harness.run("r3")
    assert row(harness).backlog == 0


def test_states_are_kept_with_their_reasons(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.extract(harness.open("r2").plan)
    harness.close("r2", ["merge"])
    harness.run("r3")
    assert [one.state for one in row(harness).history] == [
        TableState.SNAPSHOTTING,
        TableState.REPLICATING,
        TableState.FAILING,
        TableState.REPLICATING,
    ]
    assert "merge" in row(harness).history[2].reason


def test_a_rebuilt_row_has_the_changes_and_bytes_of_the_change_log(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.run("r2")
    counted = row(harness)
    harness.state.change_tables(
        "shop", lambda rows: [TableRow(one.table, one.target, one.state) for one in rows.values()]
    )
    rebuild_index(harness.replicator, "an operator")
    assert row(harness).recent == counted.recent
    assert cost(harness).bytes == total(counted.costs.values()).bytes
