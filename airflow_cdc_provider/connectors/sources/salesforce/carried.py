"""What a channel carries of its objects. A filter, a missing permission or a missing member leaves changes out without
an error, so each run asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_cdc_provider.connectors.sources.salesforce.channels import ChannelFacts, is_custom, single_entity
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import carried_problems, type_problems
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import event_name
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import Connection
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, of_table
from airflow_cdc_provider.core.table.identity import StreamSettings, TableIdentity

NO_TOPIC = "topic.not.found"
CALLS_AT_ONCE = 8


def not_carried(org: Org, channel: ChannelFacts, tables: Sequence[TableTask]) -> dict[str, Problem]:
    """The first problem of each table whose changes the channel omits, or that has a column of an unknown type. Raises
    SourceUnavailable."""
    permitted = _permitted(org, tables)
    found: dict[str, Problem] = {}
    for task in tables:
        may = permitted[task.table]
        problems = (*type_problems(task), *carried_problems(task, may, channel, org.options.channel))
        for problem in of_table(task.table, problems):
            found.setdefault(task.table, problem)
    return found


def _permitted(org: Org, tables: Sequence[TableTask]) -> dict[str, bool]:
    with org.pubsub.connected() as pubsub, ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        names = [task.table for task in tables]
        return dict(zip(names, pool.map(lambda name: may_subscribe(org, pubsub, name), names), strict=True))


def may_subscribe(org: Org, pubsub: Connection, table: str) -> bool:
    """Whether the user may read the changes of every record. The single-object channel refuses a user without that
    permission; a channel of several objects omits the changes."""
    try:
        return pubsub.topic(f"/data/{event_name(table)}").can_subscribe
    except CheckFailed as error:
        # A member of a custom channel may have no single-object channel.
        return is_custom(org.options.channel) and all(NO_TOPIC in problem.found for problem in error.problems)


def sees_every_record_of(org: Org, table: str) -> bool:
    """Whether Salesforce says so. It does not of a member of a custom channel that has no single-object channel."""
    with org.pubsub.connected() as pubsub:
        try:
            return pubsub.topic(f"/data/{event_name(table)}").can_subscribe
        except CheckFailed:
            return False


def omitted(org: Org, tables: Sequence[TableTask]) -> dict[str, str]:
    """The objects whose changes a channel of several objects omits, because the user may not see every record: later
    changes of other objects take its position past them. Raises SourceUnavailable."""
    if single_entity(org.options.channel):
        return {}
    why = "the user had no permission to see every record"
    return {table: why for table, permitted in _permitted(org, tables).items() if not permitted}


def identities(channel: ChannelFacts, tables: Iterable[str]) -> dict[str, TableIdentity]:
    """Of the objects in the channel: when and how it carries them."""
    return {
        table: TableIdentity(
            table="",
            columns={},
            last_number=0,
            membership=channel.members[table],
            sent=StreamSettings(channel.filters.get(table, "all changes")),
        )
        for table in tables
        if table in channel.members
    }
