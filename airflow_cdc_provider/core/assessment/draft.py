"""A new replicator for the tables of a source, as data: what it copies, and comments for its author. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.core.assessment.support import ReplicatorAssessment, Support, TableAssessment
from airflow_cdc_provider.core.assessment.texts import duration_text, size_text

NO_MATCH, NO_TABLE = "DEF023", "DEF041"
"""Problems of a pattern, or a name, that selects nothing."""


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
        tuple(text for text in (_facts(final), *map(str, dict.fromkeys([*findings, *unusable])), note) if text),
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


def with_tables(
    draft: Draft,
    whole: ReplicatorAssessment,
    final: ReplicatorAssessment,
    value_notes: Mapping[str, str],
    target_given: bool,
) -> Draft:
    """With an entry per table in place of the patterns, and with comments. ``final``: as ``whole``, without the columns
    that cannot be copied. ``value_notes``: by table. ``target_given``: False if the target is an example."""
    tables = {table.table: table for table in final.tables}
    entries = [
        draft_table(table, tables[table.table], value_notes.get(table.table, ""))
        for table in whole.tables
        if NO_TABLE not in (finding.code for finding in table.findings)
    ]
    if all(entry.disabled for entry in entries):
        entries += _patterns(draft, bool(entries))
    notes = ["Written by `airflow cdc init`. Rows, sizes and times are estimates from the statistics of the source."]
    if final.sizes_unknown:
        notes.append(f"Sizes are unknown: {final.sizes_unknown}.")
    findings = [finding for finding in final.findings if finding.code != NO_MATCH]
    notes += map(str, findings)
    if not target_given:
        notes.append("The target and the staging location are examples: set them before `airflow cdc check`.")
    statements = tuple(finding.suggestion for finding in findings if finding.suggestion)
    return replace(draft, tables=tuple(entries), notes=tuple(notes), statements=statements)


def _patterns(draft: Draft, has_tables: bool) -> list[DraftTable]:
    """In place of tables that can be copied, so that the YAML is valid."""
    if has_tables:
        note = "No table can be copied yet: solve the problems above, and replace this pattern by the tables."
    else:
        note = (
            "The source shows no tables now. A feed shows its tables, keys and columns in its messages only: replace "
            "this pattern when it has messages, or name the tables that you expect."
        )
    return [replace(pattern, notes=(note,)) for pattern in draft.tables]
