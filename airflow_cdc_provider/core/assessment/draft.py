"""A new replicator for the tables of a source, as data: what it copies, and comments for its author. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.assessment.support import Finding, Support, TableAssessment
from airflow_cdc_provider.core.assessment.texts import duration_text, size_text


@dataclass(frozen=True)
class DraftTable:
    """``notes``: comments above the entry. ``statements``: what to do, each on a line of its own. ``disabled``: the
    entry itself is a comment."""

    source: str
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True)
class Draft:
    """``source`` and ``target``: key → value of the YAML. ``notes`` and ``statements``: comments at the top."""

    name: str
    source: Mapping[str, Any]
    target: Mapping[str, Any]
    staging: str
    tables: tuple[DraftTable, ...]
    notes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()


def columns_to_exclude(table: TableAssessment) -> tuple[str, ...]:
    """The columns without which the table can be copied; none if that does not help."""
    unusable = table.with_support(Support.NO)
    if table.findings or any(column.key for column in unusable) or len(unusable) == len(table.columns):
        return ()
    return tuple(column.name for column in unusable)


def draft_table(table: TableAssessment, without: TableAssessment | None = None, note: str = "") -> DraftTable:
    """``without``: the assessment of the table without ``columns_to_exclude``. ``note``: values that stop the copy."""
    exclude = columns_to_exclude(table) if without else ()
    final = without or table
    left_out = [finding for column in table.with_support(Support.NO) for finding in column.findings]
    findings = list(dict.fromkeys([*table.findings, *(f for f in left_out if f.code), *final.findings]))
    disabled = final.support is Support.NO
    return DraftTable(
        table.table,
        exclude,
        tuple(text for text in (_facts(final), *_reasons(findings), note) if text),
        tuple(finding.suggestion for finding in findings if finding.suggestion),
        disabled,
    )


def _facts(table: TableAssessment) -> str:
    """What the source knows about the table: ``1,200 rows, 3 MiB, key (id), first copy about 1 s``."""
    known = [f"{table.size.rows:,} rows" if table.size.rows is not None else "", size_text(table.size.bytes)]
    if table.columns:
        known.append(f"key ({', '.join(table.key)})" if table.key else "no key")
    known.append(f"first copy about {duration_text(table.copy_s)}" if table.copy_s is not None else "")
    return ", ".join(fact for fact in known if fact)


def _reasons(findings: Iterable[Finding]) -> list[str]:
    return [f"{finding.code}: {finding.reason}" for finding in findings]
