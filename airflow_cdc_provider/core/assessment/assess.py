"""From the problems that ``check`` finds, and from the values that two types have, to an assessment. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.assessment.support import ColumnAssessment, Finding, Support, TableAssessment
from airflow_cdc_provider.core.columns.copied import source_type
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import (
    MayHold,
    UnsupportedBy,
    UnsupportedValues,
    unsupported_values,
    unsupported_values_remedy,
)


@dataclass(frozen=True)
class TypeRules:
    """What the two systems state about types. ``target_types``: of all columns of a schema, in its order.
    ``required``: what the target's type requires of values, in words, empty if nothing."""

    may_hold: MayHold
    unsupported: UnsupportedBy
    target_types: Callable[[TableSchema], Sequence[str]]
    required: Callable[[Column, bool], str]


def assess_table(
    task: TableTask, described: TableSchema | None, problems: Iterable[Problem], rules: TypeRules, omitted: bool = False
) -> TableAssessment:
    """``described``: the source's own schema of the table; None if the source has no such table. ``problems``: of this
    table. ``omitted``: no run copies the table, because its rule is invalid."""
    of_columns, of_table = _assign(problems, task.schema)
    limits = {entry.column: entry for entry in unsupported_values(task, rules.may_hold, rules.unsupported)}
    columns = tuple(
        _column(column, kind, task.schema.key, of_columns.get(column.name, ()), limits.get(column.name), rules)
        for column, kind in zip(task.schema.columns, rules.target_types(task.schema), strict=True)
    )
    excluded = tuple(name for name in (described.names if described else ()) if name not in task.schema.names)
    support = Support.NO if omitted or of_table else _support(columns)
    return TableAssessment(task.table, task.target, support, columns, tuple(map(finding_of, of_table)), excluded)


def finding_of(problem: Problem) -> Finding:
    details = [text for text in (problem.found, problem.allowed and f"allowed: {problem.allowed}") if text]
    return Finding(problem.code, ": ".join([problem.what, "; ".join(details)]) if details else problem.what, problem.do)


def _assign(
    problems: Iterable[Problem], schema: TableSchema
) -> tuple[Mapping[str, tuple[Problem, ...]], tuple[Problem, ...]]:
    """By the column that cannot be copied, and those of the table as a whole."""
    of_columns: dict[str, tuple[Problem, ...]] = {}
    of_table: list[Problem] = []
    for problem in problems:
        names = [name for name in problem.columns if name in schema.names]
        for name in names:
            of_columns[name] = (*of_columns.get(name, ()), problem)
        if not names:
            of_table.append(problem)
    return of_columns, tuple(of_table)


def _column(
    column: Column,
    target_type: str,
    key: Sequence[str],
    problems: Sequence[Problem],
    limit: UnsupportedValues | None,
    rules: TypeRules,
) -> ColumnAssessment:
    in_key = column.name in key
    findings = list(map(finding_of, problems))
    if limit:
        required = rules.required(column, in_key)
        reason = f"may have values that the copy cannot hold: {', '.join(sorted(limit.values))}"
        reason += f" (the target requires {required})" if required else ""
        findings.append(Finding("", reason, unsupported_values_remedy([limit])))
    support = Support.NO if problems else Support.PARTIAL if limit else Support.YES
    return ColumnAssessment(
        column.name, source_type(column), target_type, column.nullable, in_key, support, tuple(findings)
    )


def _support(columns: Sequence[ColumnAssessment]) -> Support:
    unusable = [column for column in columns if column.support is Support.NO]
    if any(column.key for column in unusable) or len(unusable) == len(columns):
        return Support.NO
    return Support.YES if all(column.support is Support.YES for column in columns) else Support.PARTIAL
