"""The assessment of a replicator from what its source and its target answer. Reads only, except for the trial writes of
a target's check."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.copied.reading import may_hold
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import EstimatesSizes
from airflow_cdc_provider.control.examine import Examination, examine_replicator
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.assessment.assess import TypeRules, assess_table, finding_of
from airflow_cdc_provider.core.assessment.copy_rate import COPIES, DEFAULT_RATES, CopyRate, copy_seconds, measured_rate
from airflow_cdc_provider.core.assessment.support import ReplicatorAssessment, Support, TableAssessment
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import UNREADABLE, CdcError
from airflow_cdc_provider.core.spec.definition import Definition, TableRule
from airflow_cdc_provider.core.table.copies import copy_name, source_table
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.table_size import UNKNOWN_SIZE, TableSize
from airflow_cdc_provider.staging.run_files import StepFolder
from airflow_cdc_provider.targets.registry import Targets
from airflow_cdc_provider.targets.target import TargetTables

LAST_COPIES = 20
"""How many jobs with earlier copies are read for their rate."""


def assess_replicator(replicator: Replicator) -> ReplicatorAssessment:
    examination = examine_replicator(replicator)
    rate = earlier_rate(replicator) or DEFAULT_RATES.get(replicator.definition.source.type)
    return assess(replicator.definition, replicator.source, replicator.targets, examination, rate)


def assess(
    definition: Definition,
    source: SourceConnector,
    targets: Targets,
    examination: Examination,
    rate: CopyRate | None,
) -> ReplicatorAssessment:
    """Every problem of ``examination`` is a finding of a column, of a table, or of the replicator. Copies in a target
    that cannot say its types are left out: the finding about that target is one of the replicator. A table that no run
    copies is assessed for one target."""
    described = {schema.table: schema for schema in examination.described}
    tasks = {task.table: task for task in examination.tasks}
    named = {problem.table for problem in examination.problems if problem.table}
    omitted = named - tasks.keys() - {source_table(name) for name in tasks}
    sized = {source_table(name) for name in tasks} | (omitted & described.keys())
    sizes, unknown = _sizes(source, sorted(sized))
    tables = []
    for name in sorted(tasks.keys() | omitted):
        names = {name} if targets.has(source_table(name)) else {name, source_table(name)}
        problems = [problem for problem in examination.problems if problem.table in names]
        schema = described.get(source_table(name))
        copy = name if targets.has(name) else copy_name(name, next(iter(targets)))
        task = tasks.get(name) or _omitted_task(name, schema, targets.table_name(copy))
        try:
            rules = _type_rules(source, targets.of(copy))
            table = assess_table(task, schema, problems, rules, name in omitted)
        except UNREADABLE:
            continue
        size = sizes.get(source_table(name), UNKNOWN_SIZE)
        seconds = None if table.support is Support.NO else copy_seconds(size, rate)
        tables.append(replace(table, size=size, copy_s=seconds))
    tables += [
        TableAssessment(one.where, "", Support.NO, findings=(replace(finding_of(one), code=""),))
        for one in examination.left_out
    ]
    findings = tuple(finding_of(problem) for problem in examination.problems if not problem.table)
    return ReplicatorAssessment(definition.name, tuple(tables), findings, rate, unknown)


def _type_rules(source: SourceConnector, target: TargetTables) -> TypeRules:
    def required(column: Column, in_key: bool) -> str:
        restriction = target.restriction(column, in_key)
        return str(restriction) if restriction else ""

    return TypeRules(may_hold(source), target.unsupported_values, target.column_types, required)


def earlier_rate(replicator: Replicator) -> CopyRate | None:
    """From the results of the last copies, as far as staging still has them."""
    attempts = replicator.state.ended_attempts(replicator.name, COPIES, LAST_COPIES)
    results = (StepFolder(replicator.log.store, attempt.folder).result() for attempt in attempts)
    return measured_rate(result for result in results if result is not None)


def only(assessment: ReplicatorAssessment, tables: Collection[str]) -> ReplicatorAssessment:
    """Of these tables; of all if there are none."""
    chosen = tuple(table for table in assessment.tables if table.table in tables)
    return replace(assessment, tables=chosen) if tables else assessment


def _sizes(source: SourceConnector, tables: Sequence[str]) -> tuple[Mapping[str, TableSize], str]:
    """By table, and why the source gives none. Missing rights on the statistics prevent no copy."""
    if not isinstance(source, EstimatesSizes):
        return {}, "the source has no statistics"
    try:
        return source.sizes(tables) if tables else {}, ""
    except CdcError as error:
        problem = error.problems[0]
        return {}, f"{problem.what} ({problem.found})" if problem.found else problem.what


def _omitted_task(table: str, described: TableSchema | None, target_table: str) -> TableTask:
    """With all columns: the rule that omits the table is invalid."""
    schema = described or TableSchema(table, ())
    return TableTask(table, target_table, schema, TableRule(table), "", TableState.PENDING)
