"""``airflow cdc tables|describe|assess NAME``: shows what a replicator selects, and whether it can be copied."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import find_definition, open_with_connections, require_tables
from airflow_cdc_provider.control.assessments import assess_replicator, only
from airflow_cdc_provider.control.described_tables import described_tables, other_kinds
from airflow_cdc_provider.core.assessment.copy_rate import CopyRate
from airflow_cdc_provider.core.assessment.plain import plain_assessment
from airflow_cdc_provider.core.assessment.support import (
    ColumnAssessment,
    Finding,
    ReplicatorAssessment,
    Support,
    TableAssessment,
)
from airflow_cdc_provider.core.assessment.texts import duration_text, size_text
from airflow_cdc_provider.core.spec.selection import left_out, select
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.states import TableState

TABLES = ("table", "target", "rule", "key", "columns", "state", "reason")
COLUMNS = ("column", "type", "target type", "nullable", "key", "copied")
ASSESSED_TABLES = ("table", "support", "target", "rows", "size", "first copy", "columns", "NO", "PARTIAL", "reason")
ASSESSED_COLUMNS = ("table", "column", "type", "target type", "support", "reason")


@cli_command
def tables(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    rows = replicator.state.tables(replicator.name)
    described = described_tables(replicator, rows)
    others = other_kinds(replicator.source)
    selections, problems = select(replicator.definition, described, replicator.targets.table_name, others=others)
    plain: list[dict[str, Any]] = []
    for selection in selections:
        row = rows.get(selection.table)
        plain.append(
            {
                "table": selection.table,
                "target": selection.target,
                "rule": selection.rule.source,
                "key": list(selection.schema.key),
                "columns": len(selection.schema.columns),
                "state": (row.state if row else TableState.PENDING).value,
                "reason": row.reason if row else "",
            }
        )
    selected = {selection.table for selection in selections}
    unselected = sorted(schema.table for schema in described if schema.table not in selected)
    body = {"replicator": replicator.name, "tables": plain, "not_selected": unselected}
    cells = [tuple(", ".join(row[c]) if c == "key" else row[c] for c in TABLES) for row in plain]
    code = exit_codes.CONFIGURATION if problems else exit_codes.OK
    lines = [f"not selected: {len(unselected)} tables of the source"] if unselected else []
    lines += [f"warning: {problem}" for problem in left_out(replicator.definition, described, others)]
    return CommandOutput(body, OutputTable(TABLES, cells), lines, problems, code)


@cli_command
def describe(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    rows = replicator.state.tables(replicator.name)
    described = {schema.table: schema for schema in described_tables(replicator, rows)}
    selections, _ = select(replicator.definition, list(described.values()), replicator.targets.table_name)
    copies = {one.table: one for one in selections}
    (name,) = require_tables(replicator, [args.table], {*described, *copies})
    selection = copies.get(name) or next((one for one in selections if one.source_table == name), None)
    source = described[source_table(name)]
    schema = selection.schema if selection else source
    copy = selection.table if selection else name
    target = replicator.targets.of(copy) if replicator.targets.has(copy) else None
    target_types = dict(zip(schema.names, target.column_types(schema), strict=True)) if target else {}
    columns = [
        {
            "name": column.name,
            "type": column.type_text,
            "target_type": target_types.get(column.name, ""),
            "nullable": column.nullable,
            "key": column.name in schema.key,
            "copied": selection is not None and column.name in schema.names,
        }
        for column in source.columns
    ]
    body = {
        "replicator": replicator.name,
        "table": name,
        "target": selection.target if selection else "",
        "selected": selection is not None,
        "key": list(schema.key),
        "columns": columns,
    }
    cells = [
        tuple("yes" if value is True else "" if value is False else value for value in column.values())
        for column in columns
    ]
    lines = [] if selection else [f"{name} is not selected by {replicator.name}"]
    return CommandOutput(body, OutputTable(COLUMNS, cells), lines)


@cli_command
def assess(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    whole = assess_replicator(replicator)
    require_tables(replicator, args.table, (table.table for table in whole.tables))
    assessment = only(whole, args.table)
    listing = column_listing(assessment.tables) if args.table else table_listing(assessment.tables)
    code = exit_codes.OK if assessment.ready else exit_codes.CONFIGURATION
    return CommandOutput(plain_assessment(assessment), listing, list(assessment_lines(assessment)), code=code)


def table_listing(tables: Iterable[TableAssessment]) -> OutputTable:
    return OutputTable(ASSESSED_TABLES, [_table_cells(table) for table in tables])


def column_listing(tables: Iterable[TableAssessment]) -> OutputTable:
    rows = [
        (table.table, one.name, one.source_type, one.target_type, one.support.value, _reasons(one.findings))
        for table in tables
        for one in table.columns
    ]
    return OutputTable(ASSESSED_COLUMNS, rows)


def assessment_lines(assessment: ReplicatorAssessment) -> Iterator[str]:
    """What no cell contains: problems of the whole, what to do, and where the estimates come from."""
    for finding in assessment.findings:
        yield from _finding_lines(assessment.replicator, finding)
    for table in assessment.tables:
        for finding in table.findings:
            yield from _finding_lines(table.table, finding)
        for column in _worst_first(table.columns):
            for finding in column.findings:
                yield from _finding_lines(f"{table.table}.{column.name}", finding)
    if assessment.sizes_unknown:
        yield f"sizes are unknown: {assessment.sizes_unknown}"
    known = [table.copy_s for table in assessment.tables if table.copy_s is not None]
    if known and assessment.rate:
        yield f"first copies: about {duration_text(sum(known))} in all, at {_rate_text(assessment.rate)}"


def _table_cells(table: TableAssessment) -> tuple[object, ...]:
    return (
        table.table,
        table.support.value,
        table.target,
        table.size.rows,
        size_text(table.size.bytes),
        duration_text(table.copy_s),
        len(table.columns),
        len(table.with_support(Support.NO)),
        len(table.with_support(Support.PARTIAL)),
        _reasons(table.findings),
    )


def _reasons(findings: Iterable[Finding]) -> str:
    return "; ".join(map(str, findings))


def _worst_first(columns: Iterable[ColumnAssessment]) -> list[ColumnAssessment]:
    return sorted(columns, key=lambda column: column.support is not Support.NO)


def _finding_lines(where: str, finding: Finding) -> Iterator[str]:
    yield f"{where}: {finding}"
    if finding.suggestion:
        yield f"    do: {finding.suggestion}"


def _rate_text(rate: CopyRate) -> str:
    default = "a default, measured on a busy machine with two cores"
    origin = f"measured on {rate.copies} earlier copies" if rate.copies else default
    size = f" or {size_text(round(rate.bytes_per_s))}" if rate.bytes_per_s else ""
    return f"{rate.rows_per_s:,.0f} rows{size} per second ({origin})"
