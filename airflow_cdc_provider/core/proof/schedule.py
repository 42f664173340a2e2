"""When a table is compared without a command, and what becomes of the result. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.questions import Answer, Question, question_id
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.verified import Verified
from airflow_cdc_provider.core.times import parse_utc

KEYS_SHOWN = 3


@dataclass(frozen=True)
class DueComparison:
    """``repair``: what differs is repaired, too. ``sampled``: only some rows are compared, those ``after`` a key."""

    repair: bool = False
    sampled: bool = False
    after: tuple[str, ...] = ()


def due_comparison(verify: Verify, row: TableRow | None, answer: Answer | None, now: str) -> DueComparison | None:
    """``answer``: to the question about the last comparison of the table."""
    if row is None or row.control is None or row.state is not TableState.REPLICATING:
        return None
    last = row.verified
    if last and last.question and answer is Answer.REPAIR:
        return DueComparison(repair=True)
    since = last.at if last else row.since
    if verify.every is None or (since and parse_utc(now) - parse_utc(since) < verify.every):
        return None
    sampled = verify.sample < 1
    after = last.upto if last and sampled else None
    return DueComparison(verify.repair is OnDifference.ON, sampled, after or ())


def verified_row(verify: Verify, result: TableResult | None, before: Verified | None, at: str) -> Verified | None:
    """``result``: of the comparison of the table in a run; None if it was not compared. ``before``: of the last one.
    ``at``: when that run began. A result that is stored again replaces no later one. A time alone does not tell: a
    clock may have been set back since."""
    detail: dict[str, Any] = result.detail if result else {}
    if result is None or result.outcome is not Outcome.DONE or "identical" not in detail:
        return before
    if before is not None and before.at > at and before.window >= (result.window or 0):
        return before
    sample = detail.get("sample")
    verified = Verified(
        at=at,
        window=result.window or 0,
        identical=detail["identical"],
        differing=detail.get("differing", 0),
        more=detail.get("more", False),
        repaired=detail.get("repaired", 0),
        not_repaired=detail.get("not_repaired", ""),
        inexact=detail.get("inexact", False),
        sampled=sample is not None,
        upto=tuple(sample["upto"]) if sample and sample["upto"] else None,
    )
    if verified.cured or verified.not_repaired or verify.repair is not OnDifference.ASK:
        return verified
    return replace(verified, question=_question(result, detail, before))


def _question(result: TableResult, detail: dict[str, Any], before: Verified | None) -> Question:
    """The same difference is not asked about again."""
    keys = detail["differences"]
    shown = ", ".join(keys[:KEYS_SHOWN]) + (", …" if len(keys) > KEYS_SHOWN else "")
    changes = (f"{detail['differing']:,} rows differ from the source, by their keys: {shown}",)
    if before and before.question and before.question.changes == changes:
        return before.question
    window = result.window or 0
    return Question(
        question_id(result.table, "", window, "verify", changes[0]),
        result.table,
        window,
        changes,
        (Answer.REPAIR, Answer.LEAVE),
    )


def _remedy(not_repaired: str) -> str:
    """The command behind the last `do:`; keys before it may have any text."""
    _, do, command = not_repaired.rpartition("; do: ")
    return command if do and command.startswith("airflow cdc ") else ""


def difference_problem(replicator: str, table: str, verified: Verified) -> Problem | None:
    """A difference that no operator is asked about, and that is not repaired. An inexact one may be a change on its
    way."""
    if verified.cured or verified.question or verified.inexact:
        return None
    return Problem(
        "VER006",
        f"the copy of {table} differs from its source",
        where=table,
        found=f"{verified.differing - verified.repaired:,} rows that differ, at the end of window {verified.window}",
        do=_remedy(verified.not_repaired) or f"airflow cdc verify {replicator} --table {in_shell(table)} --repair",
        data=f"the rows are listed by: airflow cdc differences {replicator} --table {in_shell(table)}",
        table=source_table(table),
    )
