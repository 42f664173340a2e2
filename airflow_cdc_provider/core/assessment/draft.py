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


def draft_table(whole: TableAssessment, final: TableAssessment, note: str = "") -> DraftTable:
    """``whole``: with all columns. ``final``: without ``columns_to_exclude``. ``note``: on the values of the table."""
    exclude = columns_to_exclude(whole)
    unusable = [finding for column in whole.with_support(Support.NO) for finding in column.findings if finding.code]
    findings = dict.fromkeys([*final.findings, *([] if exclude else unusable)])
    return DraftTable(
        whole.table,
        exclude,
        tuple(text for text in (_facts(final), *_reasons(dict.fromkeys([*findings, *unusable])), note) if text),
        tuple(finding.suggestion for finding in findings if finding.suggestion),
        final.support is Support.NO,
    )


def _facts(table: TableAssessment) -> str:
    """From the statistics and the catalog of the source: ``1,200 rows, 3 MiB, key (id), first copy about 1 s``."""
    known = [f"{table.size.rows:,} rows" if table.size.rows is not None else "", size_text(table.size.bytes)]
    if table.columns:
        known.append(f"key ({', '.join(table.key)})" if table.key else "no key")
    known.append(f"first copy about {duration_text(table.copy_s)}" if table.copy_s is not None else "")
    return ", ".join(fact for fact in known if fact)


def _reasons(findings: Iterable[Finding]) -> list[str]:
    return [f"{finding.code}: {finding.reason}" for finding in findings]
