"""Report every problem of the source at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from airflow_cdc_provider.connectors.sources.salesforce.carried import may_subscribe
from airflow_cdc_provider.connectors.sources.salesforce.channels import ChannelFacts, read_channel
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import ObjectFacts, table_problems
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import Connection
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, of_table

OLDEST_VERSION = 58.0
BUDGETS = {
    "DailyApiRequests": ("SRC040", "API requests"),
    "DailyBulkV2QueryJobs": ("SRC040", "bulk queries"),
    "DailyDeliveredPlatformEvents": ("SRC041", "event deliveries"),
}


def find_problems(org: Org, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable if the org cannot be reached. A rejected login is one of the problems."""
    try:
        versions, limits = org.rest.versions(), org.rest.limits()
    except CheckFailed as error:
        return list(error.problems)
    problems = [*version_problems(org.options.api_version, versions), *budget_problems(limits, org.location)]
    with org.pubsub.connected() as pubsub:
        problems += _collect_problems(lambda: _require_subscribable(pubsub, org))
        channel: list[ChannelFacts] = []
        problems += _collect_problems(lambda: channel.append(read_channel(org.rest, org.options.channel)))
        facts = {task.table: _object_facts(org, pubsub, task.table, problems) for task in tables}
    problems += table_problems(tables, facts, channel[0] if channel else None, org.options.channel)
    return problems


def version_problems(version: str, supported: Sequence[str]) -> Iterator[Problem]:
    if version not in supported or float(version) < OLDEST_VERSION:
        newest = max(supported, key=float, default="none")
        yield Problem(
            "SRC012",
            f"API version {version} is not supported by the org, or has no result pages",
            found=f"newest: {newest}",
            allowed=f"{OLDEST_VERSION} to {newest}",
            do=f'api_version: "{newest}" under `source`',
        )


def budget_problems(limits: dict[str, tuple[int, int]], location: str) -> Iterator[Problem]:
    for name, (code, what) in BUDGETS.items():
        maximum, remaining = limits.get(name, (0, 1))
        if remaining <= 0:
            yield Problem(
                code,
                f"the org's limit of {what} in 24 hours is used up",
                where=location,
                found=f"{name}: {remaining} of {maximum} left",
                do="wait, run less often, or raise the limit",
            )


def _require_subscribable(pubsub: Connection, org: Org) -> None:
    channel = org.options.channel
    if not pubsub.topic(channel).can_subscribe:
        raise CheckFailed.of(
            "SRC048",
            f"the user has no permission to subscribe to channel {channel}",
            where=org.location,
            found="can_subscribe is false",
            do="grant View All Records on its objects; View All Data for objects without that permission",
        )


def _object_facts(org: Org, pubsub: Connection, table: str, problems: list[Problem]) -> ObjectFacts:
    schemas: list[ObjectSchema] = []
    problems += of_table(table, _collect_problems(lambda: schemas.append(org.rest.describe(table))))
    return ObjectFacts(schemas[0] if schemas else None, may_subscribe(org, pubsub, table))


def _collect_problems(check: Callable[[], object]) -> list[Problem]:
    try:
        check()
    except CheckFailed as error:
        return list(error.problems)
    return []
