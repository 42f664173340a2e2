"""Every obstacle at once, each with its cure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.sources.salesforce.check import budget_problems, version_problems
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import ObjectFacts, table_problems
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, described
from airflow_cdc_provider.connectors.sources.salesforce_poll.options import SalesforcePollOptions
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.table.schema import Kind

CALLS = frozenset({"DailyApiRequests", "DailyBulkV2QueryJobs"})


def find_problems(org: Org, options: SalesforcePollOptions, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable where the org cannot be reached; a refused login is one of the problems."""
    try:
        versions, limits = org.rest.versions(), org.rest.limits()
        answers = org.rest.describe_all(sorted(options.objects))
    except CheckFailed as error:
        return list(error.problems)
    found = {one.schema.table: one for one in map(described, answers)}
    problems = [*version_problems(org.options.api_version, versions)]
    problems += budget_problems({name: left for name, left in limits.items() if name in CALLS}, org.place)
    problems += [_hidden(name) for name in options.objects if name not in found]
    problems += table_problems(tables, {t.table: ObjectFacts(found.get(t.table), True) for t in tables}, None, "")
    for task in tables:
        if task.table in found:
            problems += _stamp(found[task.table], options)
    return problems


def _stamp(one: ObjectSchema, options: SalesforcePollOptions) -> Iterator[Problem]:
    table = one.schema.table
    name = options.timestamp_columns.get(table)
    if name and (name not in one.schema.names or one.schema.column(name).type.kind is not Kind.TIMESTAMPTZ):
        yield Problem(
            "SRC062",
            f"nothing tells which records of {table} were changed",
            where=f"{table}.{name}",
            found="no such field of date and time",
            do="take it out of `timestamp_columns`: the best field is found by itself",
        )
    if not name and not one.modstamp:
        yield Problem(
            "SRC062",
            f"{table} has no field that tells of changes: it is copied as a whole in every run",
            where=table,
            found="none of SystemModstamp, LastModifiedDate, CreatedDate, LoginTime",
            do="give it a replicator of its own with a schedule that fits that",
        )
    if not one.replicable and options.key_audit is None:
        yield Problem(
            "SRC065",
            f"records that are deleted from {table} for good stay in the target",
            where=table,
            found="Salesforce does not tell its deletes, and no `key_audit` under `source`",
            do="key_audit: 1d",
        )


def _hidden(name: str) -> Problem:
    return Problem(
        "SRC042",
        f"there is no object {name}, or it is hidden from the user",
        where="`objects` under `source`",
        found=name,
        do="mend the name, or grant read access to the object",
    )
