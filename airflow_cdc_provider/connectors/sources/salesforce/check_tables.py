"""What keeps an object from being copied exactly. Pure: facts in, problems out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.salesforce.channels import STANDARD, ChannelFacts, own_entity
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem


@dataclass(frozen=True)
class ObjectFacts:
    """``described`` is None where the user does not see the object. ``may_subscribe``: to the object's own channel,
    which takes the right to see every record."""

    described: ObjectSchema | None
    may_subscribe: bool


def table_problems(
    tables: Sequence[TableTask], facts: Mapping[str, ObjectFacts], channel: ChannelFacts | None, channel_name: str
) -> list[Problem]:
    """``channel`` is None where its members cannot be read, which is a problem of its own."""
    problems: list[Problem] = []
    for task in tables:
        told = facts[task.table]
        problems += _rule(task)
        if told.described:
            problems += _kind(task, told.described)
            problems += _hidden_columns(task, told.described)
        carried = channel is None or task.table in channel.entities
        if not carried:
            problems += _not_carried(task, channel_name)
        elif not told.may_subscribe:
            problems += _not_permitted(task, channel_name)
        if channel and task.table in channel.filters:
            problems += _filtered(task, channel_name, channel.filters[task.table])
    return problems


def refuse_rules(tables: Sequence[TableTask]) -> None:
    """Raises CheckFailed where a rule asks for what a stream of partial changes cannot keep."""
    problems = [problem for task in tables for problem in _rule(task)]
    if problems:
        raise CheckFailed(*problems)


def _rule(task: TableTask) -> Iterator[Problem]:
    if task.schema.key != (ID,):
        yield Problem(
            "SRC016",
            f"changes of {task.table} name their records by Id and by nothing else",
            where=task.table,
            found=f"key: [{', '.join(task.schema.key)}]",
            allowed=f"key: [{ID}], which is the default",
            do="take `key` out of the table's rule",
        )
    if task.rule.where:
        yield Problem(
            "SRC018",
            f"a row filter on {task.table} cannot be kept: objects are copied whole",
            where=task.table,
            found="`where` in the table's rule",
            allowed="whole objects",
            do="take `where` out and filter in the target",
        )


def _kind(task: TableTask, described: ObjectSchema) -> Iterator[Problem]:
    if not described.queryable:
        yield Problem(
            "SRC053",
            f"{task.table} cannot be queried, so it cannot be copied",
            where=task.table,
            found="queryable is false",
            do="take it out of the definition",
        )


def _hidden_columns(task: TableTask, described: ObjectSchema) -> Iterator[Problem]:
    """Columns that the target holds and the user no longer sees. Their values would turn into NULL."""
    held = task.control.schema.names if task.control and task.control.schema else ()
    gone = [name for name in held if name not in described.schema.names]
    if gone:
        yield Problem(
            "SRC054",
            f"columns of {task.table} that the copy has are hidden from the user, or deleted",
            where=task.table,
            found=", ".join(gone[:20]) + (f" and {len(gone) - 20} more" if len(gone) > 20 else ""),
            do="grant read access to these fields; if they are gone for good: airflow cdc resync",
        )


def _not_carried(task: TableTask, channel: str) -> Iterator[Problem]:
    selection = "Setup, Change Data Capture: select it" if channel == STANDARD else "add it to the channel as a member"
    if own_entity(channel):
        selection = f"name a channel of several objects: `channel: {STANDARD}` under `source`"
    yield Problem(
        "SRC050",
        f"channel {channel} does not carry the changes of {task.table}",
        where=task.table,
        found="no member of the channel",
        do=f"{selection}; then resync {task.table} if it was copied before",
    )


def _not_permitted(task: TableTask, channel: str) -> Iterator[Problem]:
    yield Problem(
        "SRC055",
        f"the user may not see every record of {task.table}",
        where=task.table,
        found=f"its own channel refuses; {channel} would leave its changes out in silence",
        allowed="View All Records on the object; View All Data for Task and Event; View All Users for User",
        do="add the right to a permission set of the integration user",
    )


def _filtered(task: TableTask, channel: str, expression: str) -> Iterator[Problem]:
    yield Problem(
        "SRC051",
        f"channel {channel} leaves out changes of {task.table}",
        where=task.table,
        found=f"filter {expression[:200]}",
        allowed="a channel member without filter",
        do=f"take the filter off, or make a channel of your own; then resync {task.table}",
    )
