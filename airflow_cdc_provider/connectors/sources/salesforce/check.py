"""Every obstacle at once, each with its cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from airflow_cdc_provider.connectors.sources.salesforce.channels import ChannelFacts, is_custom, read_channel
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import ObjectFacts, table_problems
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import change_event
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import Connection
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, described
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem

OLDEST_VERSION = 58.0
NO_TOPIC = "topic.not.found"
BUDGETS = {
    "DailyApiRequests": ("SRC040", "API requests"),
    "DailyBulkV2QueryJobs": ("SRC040", "bulk queries"),
    "DailyDeliveredPlatformEvents": ("SRC041", "event deliveries"),
}


def find_problems(org: Org, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable where the org cannot be reached; a refused login is one of the problems."""
    problems: list[Problem] = []
    try:
        versions, limits = org.rest.versions(), org.rest.limits()
    except CheckFailed as error:
        return list(error.problems)
    problems += version_problems(org.options.api_version, versions)
    problems += budget_problems(limits, org.place)
    with org.pubsub.connected() as pubsub:
        problems += _collected(lambda: _subscribable(pubsub, org))
        channel: list[ChannelFacts] = []
        problems += _collected(lambda: channel.append(read_channel(org.rest, org.options.channel)))
        facts = {task.table: _object(org, pubsub, task.table, problems) for task in tables}
    problems += table_problems(tables, facts, channel[0] if channel else None, org.options.channel)
    return problems


def version_problems(wanted: str, offered: Sequence[str]) -> Iterator[Problem]:
    if wanted not in offered or float(wanted) < OLDEST_VERSION:
        newest = max(offered, key=float, default="none")
        yield Problem(
            "SRC012",
            f"API version {wanted} is not served, or too old for result pages",
            found=f"newest: {newest}",
            allowed=f"{OLDEST_VERSION} to {newest}",
            do=f'api_version: "{newest}" under `source`',
        )


def budget_problems(limits: dict[str, tuple[int, int]], place: str) -> Iterator[Problem]:
    for name, (code, what) in BUDGETS.items():
        most, left = limits.get(name, (0, 1))
        if left <= 0:
            yield Problem(
                code,
                f"the org's {what} of the last 24 hours are used up",
                where=place,
                found=f"{name}: {left} of {most} left",
                do="wait, run less often, or buy more",
            )


def _subscribable(pubsub: Connection, org: Org) -> None:
    channel = org.options.channel
    if not pubsub.topic(channel).can_subscribe:
        raise CheckFailed(
            Problem(
                "SRC048",
                f"the user may not read channel {channel}",
                where=org.place,
                found="can_subscribe is false",
                do="grant View All on its objects, or View All Data where an object has none of its own",
            )
        )


def _object(org: Org, pubsub: Connection, table: str, problems: list[Problem]) -> ObjectFacts:
    """What describe and the object's own channel say of it: that one refuses where a common channel would be silent."""
    answers: list[ObjectSchema] = []
    problems += _collected(lambda: answers.append(described(org.rest.describe(table))))
    refused = _collected(lambda: _own_channel(pubsub, table))
    if is_custom(org.options.channel):  # an object may be a member there alone, and have no channel of its own
        refused = [problem for problem in refused if NO_TOPIC not in problem.found]
    return ObjectFacts(answers[0] if answers else None, not refused)


def _own_channel(pubsub: Connection, table: str) -> None:
    topic = pubsub.topic(f"/data/{change_event(table)}")
    if not topic.can_subscribe:
        raise CheckFailed(Problem("SRC048", f"the user may not read the changes of {table}"))


def _collected(ask: Callable[[], object]) -> list[Problem]:
    try:
        ask()
    except CheckFailed as error:
        return list(error.problems)
    return []
