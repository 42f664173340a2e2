"""The new copy after an overflow, against the first copy of the same object."""

from __future__ import annotations

import time
from pathlib import Path

from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess
from tests.bench.figures import Figure
from tests.faults.attempts import armed
from tests.faults.dag_run import DagRun
from tests.spark.pipelines.salesforce.pipeline import SalesforcePipeline, salesforce_pipeline

OBJECT, AT_ONCE, OVERFLOW = "Account", 10_000, 100_000
WANTED = 3.0


def resync(folder: Path, records: int) -> list[Figure]:
    """``records`` of one object; one transaction changes OVERFLOW + 1 of them. Each step is an application of its own,
    measured as a whole."""
    with OrgProcess("--size", "empty", "--overflow", str(OVERFLOW)) as org:
        ids = [one for first in range(0, records, AT_ONCE) for one in loaded(org, first)]
        crm = salesforce_pipeline(org, folder / "overflow", None, OBJECT)  # type: ignore[arg-type]
        copy_s = timed(crm)["snapshot"]
        org.admin("update", object=OBJECT, ids=ids[: OVERFLOW + 1], values={"Phone": "changed"})
        resync_s = timed(crm)["reconcile.resync"]
        must_hold_all(crm, records)
    return [
        Figure(
            f"resync of {records:,} records after an overflow / first copy",
            resync_s / copy_s,
            "x",
            f"< {WANTED}",
            resync_s / copy_s < WANTED,
            f"{records / resync_s / 1000:.0f} k records/s, first copy {records / copy_s / 1000:.0f} k",
        )
    ]


def loaded(org: OrgProcess, first: int) -> list[str]:
    records = [
        {"Name": f"Account {n}", "Phone": f"+1 555 {n}", "BillingStreet": f"{n} Long Street", "NumberOfEmployees": n}
        for n in range(first, first + AT_ONCE)
    ]
    ids: list[str] = org.admin("load", object=OBJECT, records=records)["ids"]
    return ids


def timed(crm: SalesforcePipeline) -> dict[str, float]:
    """Seconds of each task of a run."""
    began: dict[str, float] = {}
    environment = armed.set({})  # no failpoint is armed, but each step is an application of its own
    try:
        dag_run: DagRun = crm.run_successfully(between=lambda task: began.setdefault(task, time.monotonic()))
    finally:
        armed.reset(environment)
    ends = [*list(began.values())[1:], time.monotonic()]
    return {task: end - at for (task, at), end in zip(began.items(), ends, strict=True) if task in dag_run.states}


def must_hold_all(crm: SalesforcePipeline, records: int) -> None:
    rows = crm.copied_rows(OBJECT, "Id", "Id", "Phone")
    changed = sum(row["Phone"] == "changed" for row in rows.values())
    assert (len(rows), changed) == (records, OVERFLOW + 1)
