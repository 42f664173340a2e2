"""Two bad records in the quarantine of ``public.a``, each with two records behind it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, quarantine_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import BadRecord, QuarantinedRecord, QuarantineList
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness

TABLE = "public.a"
SINCE = "2026-01-01T00:00:00.000+00:00"


def put_aside(harness: RunHarness, *ids: str, window: int = 1, table: str = TABLE) -> None:
    for number, one in enumerate(ids):
        record = ChangeRecord(table, "unreadable", f"{number:04d}", "s", after="{}")
        raw = b64encode(b"caf\xe9").decode()
        bad = BadRecord(one, table, window, '{"lsn": "0/1"}', "pgoutput 1", raw, "no date", SINCE, record)
        harness.replicator.log.store.create(quarantine_path(table, one), bad.encode())


def carry(harness: RunHarness, *ids: str) -> CarryOver:
    if not ids:
        return NOTHING
    listing = QuarantineList(tuple(QuarantinedRecord(one, 1, SINCE, "no date", behind=2) for one in ids))
    file = DataFile(f"carry/{TABLE}/{'-'.join(ids)}/listing.json", len(ids), 0, "")
    harness.replicator.log.store.write(file.path, listing.encode())
    return CarryOver((), {"quarantined": len(ids), "parked": 2 * len(ids)}, file)


def with_bad_records(harness: RunHarness) -> RunHarness:
    replicated(harness)
    put_aside(harness, "one", "two")
    harness.commit("public_a", harness.control(TABLE).fenced(carry=carry(harness, "one", "two"), attempt="merge"))
    return harness


def staged_and_merged(harness: RunHarness, run_id: str, *left: str, decided: Mapping[str, str] | None = None) -> None:
    """The commits and results of the Spark steps, which release the decided records."""
    plan = harness.replicator.run(run_id).plan()
    record = harness.control(TABLE).fenced(carry=carry(harness, *left), attempt="merge")
    harness.commit("public_a", record)
    done = TableResult(TABLE, Outcome.DONE, 3, {"updated": 3}, record.fence, record.window)
    staged = TableResult(TABLE, Outcome.DONE, 3, decided=dict(decided or {}))
    harness.write_result(plan.run_id, "stage", StepKind.STAGE, [staged])
    harness.write_result(plan.run_id, "merge", StepKind.MERGE, [done])
