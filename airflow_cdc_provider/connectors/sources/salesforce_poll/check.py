"""Report every problem of the source at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.sources.salesforce.check import budget_problems, version_problems
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import ObjectFacts, table_problems
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import named_timestamp, timestamp_column_of
from airflow_cdc_provider.connectors.sources.salesforce_poll.options import SalesforcePollOptions
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, of_table

CALLS = frozenset({"DailyApiRequests", "DailyBulkV2QueryJobs"})


def find_problems(org: Org, options: SalesforcePollOptions, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable if the org cannot be reached. A rejected login is one of the problems."""
    try:
        versions, limits = org.rest.versions(), org.rest.limits()
        described = org.rest.describe_all(options.objects)
    except CheckFailed as error:
        return list(error.problems)
    objects = {entity.schema.table: entity for entity in described}
    problems = [*version_problems(org.options.api_version, versions)]
    problems += budget_problems({name: limit for name, limit in limits.items() if name in CALLS}, org.location)
    problems += [_missing_object(name) for name in options.objects if name not in objects]
    problems += table_problems(tables, {t.table: ObjectFacts(objects.get(t.table), True) for t in tables}, None, "")
    for task in tables:
        if task.table in objects:
            problems += of_table(task.table, _polling_problems(objects[task.table], options))
    return problems


def _polling_problems(entity: ObjectSchema, options: SalesforcePollOptions) -> Iterator[Problem]:
    table = entity.schema.table
    try:
        timestamp_column_of(entity, options)
    except CheckFailed as error:
        yield from error.problems
    if not named_timestamp(entity, options):
        yield Problem(
            "SRC062",
            f"{table} has no field with the time of the last change: every run copies the whole object",
            where=table,
            found="none of SystemModstamp, LastModifiedDate, CreatedDate, LoginTime",
            do="move the object to a separate replicator with a suitable schedule",
        )
    if not entity.replicable and options.key_audit is None:
        yield Problem(
            "SRC065",
            f"records that are permanently deleted from {table} stay in the target",
            where=table,
            found="Salesforce does not list its deleted records, and no `key_audit` under `source`",
            do="key_audit: 1d",
        )


def _missing_object(name: str) -> Problem:
    return Problem(
        "SRC042",
        f"object {name} does not exist, or is hidden from the user",
        where="`objects` under `source`",
        found=name,
        do="correct the name, or grant read access to the object",
        table=name,
    )
