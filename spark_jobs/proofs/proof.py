"""One table at one position: compared, reported, and repaired if that is requested."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import TableSnapshot
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.proof.key_intervals import WHOLE, KeyInterval
from airflow_cdc_provider.core.proof.repairs import why_not_repaired
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.target import RewritesDocuments, TargetState, TargetTables
from spark_jobs.copies.extents import filtered
from spark_jobs.proofs.compare import DIFFERENCES_SHOWN, Comparison, compare, compared_columns
from spark_jobs.proofs.repair import find_rows, merge_rows
from spark_jobs.proofs.report import write_report
from spark_jobs.proofs.source_side import SourceSide, open_source_side
from spark_jobs.proofs.target_side import TargetSide, open_target_side
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS, disable_codegen


@dataclass(frozen=True)
class Proof:
    """``detail``: of the table's result. ``fence``: of the last commit. ``counts``: target rows that a repair changed,
    by effect."""

    detail: dict[str, Any]
    fence: int
    counts: dict[str, int] = field(default_factory=dict)


def prove(job: Job, work: TableWork, snapshot: TableSnapshot, current: TargetState, window: int) -> Proof:
    """``current``: the state of the table at the position of the snapshot, which is the end of ``window``. Raises
    Fenced where the table has changed since."""
    copy = snapshot.copy
    control, step, table = current.control, job.step, work.task.table
    columns = compared_columns(copy, rewritten_documents(job.tables, copy))
    assert control is not None
    named = replace(columns, table=table)
    if copy.rows <= MAX_INTERPRETED_ROWS:
        disable_codegen(work.spark)
    filtered_work = replace(work, task=filtered(work.task, control.extent), new_session=lambda: work.spark)
    with open_source_side(job, filtered_work, snapshot, columns) as source:
        with work.phase("compare"):
            within = WHOLE if table not in step.sampled else _sample(source, job, step.sampled[table])
            target = open_target_side(job, work, copy, source, columns, control, current.version)
            comparison = compare(source, target, within)
        exact = job.source.exact_snapshot or (copy.exact and not source.reads_all)
        detail = comparison.detail(exact)
        detail["not_compared"] = [name for name in copy.schema.names if name not in columns.names]
        if within != WHOLE:
            detail["sample"] = {"upto": list(within.upto) if within.upto else None}
        if comparison.differences:
            failpoint("repair.before_report")
            detail["report"] = write_report(job, named, window, comparison.differences)
        if comparison.identical:
            return Proof(detail, control.fence)
        rule, more = work.task.rule, comparison.more
        if reason := why_not_repaired(step.definition.name, rule, named, control, exact, more):
            return Proof({**detail, "not_repaired": reason}, control.fence)
        if table not in step.repair_tables or work.task.rewritten:
            return Proof(detail, control.fence)
        with work.phase("repair"):
            return _repaired(job, work, copy, source, target, comparison, control, detail)


def rewritten_documents(tables: TargetTables, copy: Copy) -> tuple[str, ...]:
    """The columns of a copy whose texts change in the target."""
    return tables.rewritten_documents(copy.schema) if isinstance(tables, RewritesDocuments) else ()


def _sample(source: SourceSide, job: Job, after: tuple[str, ...]) -> KeyInterval:
    """The next rows after a key, as many as a sample has."""
    rest = KeyInterval(after or None)
    cuts = source.cuts(rest, ceil(max(source.rows, 1) * job.step.definition.verify.sample))
    return KeyInterval(rest.after, cuts[0] if cuts else None)


def _repaired(
    job: Job,
    work: TableWork,
    copy: Copy,
    source: SourceSide,
    target: TargetSide,
    comparison: Comparison,
    control: ControlRecord,
    detail: dict[str, Any],
) -> Proof:
    found = find_rows(source, target, comparison)
    merged = merge_rows(job, work, copy, control, found)
    remaining = _remaining(job, work, copy, source, target, comparison, control)
    detail = {
        **detail,
        "repaired": len(comparison.keys) - len(remaining),
        "rows_read": detail["rows_read"] + (0 if source.reads_all else len(found.present)),
    }
    if remaining:
        shown = ", ".join(remaining[:DIFFERENCES_SHOWN])
        resync = f"airflow cdc resync {job.step.definition.name} --table {in_shell(work.task.table)}"
        detail["not_repaired"] = f"{len(remaining):,} keys still differ after the repair, such as {shown}; do: {resync}"
    return Proof(detail, merged.fence or control.fence, merged.counts)


def _remaining(
    job: Job,
    work: TableWork,
    copy: Copy,
    source: SourceSide,
    target: TargetSide,
    comparison: Comparison,
    control: ControlRecord,
) -> list[str]:
    """The keys that differ after the repair, by their hashes in the target: for instance a key that it has twice."""
    expected = {one.key: [",".join(one.source)] for one in comparison.differences if one.source}
    repaired = open_target_side(job, work, copy, source, target.schema, control, None)
    rows = repaired.hashes(comparison.intervals).where(F.col("k").isin(comparison.keys)).collect()
    actual: dict[str, list[str]] = {}
    for row in rows:
        actual.setdefault(row["k"], []).append(row["h"])
    return [key for key in comparison.keys if expected.get(key, []) != actual.get(key, [])]
