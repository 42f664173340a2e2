"""``airflow cdc check NAME``: shows all problems at once, each with its remedy."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput
from airflow_cdc_provider.cli.replicators import find_definition, open_with_connections
from airflow_cdc_provider.cli.shared_folders import unshared
from airflow_cdc_provider.connectors.copied.reading import may_hold
from airflow_cdc_provider.connectors.source_features import FindsRenamedTables, LimitsCopies, WarnsUsers
from airflow_cdc_provider.control.examine import distinct, examine_replicator, problems_of
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.verification import verification_problems
from airflow_cdc_provider.core.connections.tls import WarnsAboutTls
from airflow_cdc_provider.core.decisions.renamed_tables import rename_policy
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.special_values import unsupported_values, unsupported_values_note
from airflow_cdc_provider.hooks.notifiers import notifier_problems
from airflow_cdc_provider.hooks.spark import spark_master
from airflow_cdc_provider.hooks.state import state_tls_warnings
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.loader.schedules import runs_a_day
from airflow_cdc_provider.staging.store import store_problems
from airflow_cdc_provider.targets.target import HasQuotas, TargetTables


@cli_command
def check(args: argparse.Namespace) -> CommandOutput:
    definition = find_definition(args.name)
    of_worker = [*problems_of(lambda: _check_spark(definition)), *notifier_problems(definition.notify)]
    try:
        replicator = open_with_connections(definition)
    except CdcError as error:
        raise type(error)(*error.problems, *of_worker) from error
    examination = examine_replicator(replicator)
    tables = examination.tasks
    environment = [
        *problems_of(lambda: store_problems(replicator.log.store)),
        *of_worker,
        *verification_problems(replicator.definition, replicator.source),
    ]
    problems = distinct([*examination.problems, *environment])
    warnings = _tls_warnings(replicator)
    warnings += replicator.source.warnings() if isinstance(replicator.source, WarnsUsers) else []
    warnings += [*_rename_warnings(replicator), *_quota_warnings(replicator, tables), *examination.left_out]
    unsupported = [*_unsupported_values(replicator, tables)]
    body = {
        "replicator": replicator.name,
        "ready": not problems,
        "tables": [task.table for task in tables],
        "warnings": [to_plain(warning) for warning in warnings],
        "unsupported_values": unsupported,
        "undetected_changes": replicator.source.unseen,
    }
    lines = [f"warning: {warning}" for warning in warnings]
    lines.append(f"note: {replicator.name} cannot detect {replicator.source.unseen}")
    lines += [f"note: {text}" for text in unsupported]
    if not problems:
        lines.append(f"{replicator.name} is ready: {len(tables)} tables{_copy_limit(replicator, len(tables))}")
    return CommandOutput(
        body, lines=lines, problems=problems, code=exit_codes.CONFIGURATION if problems else exit_codes.OK
    )


def _copy_limit(replicator: Replicator, tables: int) -> str:
    """If the source limits how many tables can be copied at once."""
    source = replicator.source
    limit = source.copies_at_once() if isinstance(source, LimitsCopies) else tables
    return f", copied {limit} at a time: the source allows no more" if limit < tables else ""


def _tls_warnings(replicator: Replicator) -> list[Problem]:
    """Connections without verified TLS, which is allowed. An invalid extra is already reported as a problem."""
    systems = (replicator.source, *_targets(replicator).values(), replicator.log.store)
    ends = [end for end in systems if isinstance(end, WarnsAboutTls)]
    warnings: list[Problem] = []
    for end in ends:
        with suppress(CdcError):
            warnings += end.tls_warnings()
    with suppress(CdcError):
        warnings += state_tls_warnings()
    return list(dict.fromkeys(warnings))


def _targets(replicator: Replicator) -> dict[str, TargetTables]:
    """By name, without those that cannot be used: each of them is already reported as a problem."""
    found = {}
    for name in replicator.targets:
        with suppress(CdcError):
            found[name] = replicator.targets.named(name)
    return found


def _rename_warnings(replicator: Replicator) -> list[Problem]:
    """A source that cannot be reached is already reported as a problem."""
    definition, source = replicator.definition, replicator.source
    followed = any(rename_policy(definition, rule) is not OnChange.STOP for rule in definition.tables)
    if not followed or not isinstance(source, FindsRenamedTables):
        return []
    hidden = None
    with suppress(CdcError):
        hidden = source.renames_hidden()
    return [hidden] if hidden else []


def _quota_warnings(replicator: Replicator, tables: Iterable[TableTask]) -> list[Problem]:
    warnings: list[Problem] = []
    counts = Counter(target_of_copy(task.table) for task in tables)
    for name, target in _targets(replicator).items():
        if isinstance(target, HasQuotas):
            warnings += target.quota_warnings(counts[name], runs_a_day(replicator.definition.schedule))
    return warnings


def _unsupported_values(replicator: Replicator, tables: Iterable[TableTask]) -> Iterator[str]:
    """One line for each table whose source types have values that the target types lack."""
    targets = _targets(replicator)
    for task in tables:
        target = targets.get(target_of_copy(task.table))
        if target and (columns := unsupported_values(task, may_hold(replicator.source), target.unsupported_values)):
            yield unsupported_values_note(task.table, columns)


def _check_spark(definition: Definition) -> Iterable[Problem]:
    """Java, the Spark connection, and shared folders for its executors."""
    find_java()
    return unshared(definition, spark_master(definition.spark.connection))
