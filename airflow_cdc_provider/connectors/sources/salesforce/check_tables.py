"""Find what prevents an exact copy of an object. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.salesforce.channels import STANDARD_CHANNEL, ChannelFacts, single_entity
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, ObjectSchema, unknown_types
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table, raise_problems


@dataclass(frozen=True)
class ObjectFacts:
    """``schema`` is None if the user cannot see the object. ``may_subscribe``: to the single-object channel, which
    requires permission to see every record."""

    schema: ObjectSchema | None
    may_subscribe: bool


def table_problems(
    tables: Sequence[TableTask], facts: Mapping[str, ObjectFacts], channel: ChannelFacts | None, channel_name: str
) -> Iterator[Problem]:
    """``channel`` is None if its members cannot be read, which is reported separately."""
    for task in tables:
        yield from of_table(task.table, _table_problems(task, facts[task.table], channel, channel_name))


def _table_problems(
    task: TableTask, entity: ObjectFacts, channel: ChannelFacts | None, channel_name: str
) -> Iterator[Problem]:
    yield from _rule_problems(task)
    yield from type_problems(task)
    if entity.schema:
        yield from _not_queryable(task, entity.schema)
        yield from _hidden_columns(task, entity.schema)
    yield from carried_problems(task, entity.may_subscribe, channel, channel_name)


def carried_problems(
    task: TableTask, may_subscribe: bool, channel: ChannelFacts | None, channel_name: str
) -> Iterator[Problem]:
    """What keeps changes of the object from the channel."""
    if channel and task.table not in channel.entities:
        yield _not_carried(task, channel_name)
    elif not may_subscribe:
        yield _not_permitted(task, channel_name)
    if channel and task.table in channel.filters:
        yield _filtered(task, channel_name, channel.filters[task.table])


def require_supported_rules(tables: Sequence[TableTask]) -> None:
    """Raises CheckFailed if a rule requires what a stream of partial changes does not support, or selects a column of
    an unknown type."""
    raise_problems(problem for task in tables for problem in (*_rule_problems(task), *type_problems(task)))


def type_problems(task: TableTask) -> Iterator[Problem]:
    """Each run asks this: a type that Salesforce adds would otherwise be copied as whatever text it has."""
    if unknown := unknown_types(task.schema):
        yield Problem(
            "SRC118",
            f"{task.table} has columns of a type that cannot be copied",
            where=task.table,
            found=", ".join(f"{name} ({kind})" for name, kind in unknown.items()),
            allowed="the types that docs/guides/salesforce.md lists",
            do="leave them out with `columns.exclude`",
            data="nothing of the table was read",
            columns=tuple(unknown),
        )


def _rule_problems(task: TableTask) -> Iterator[Problem]:
    if task.schema.key != (ID,):
        yield Problem(
            "SRC016",
            f"{task.table} requires the key {ID}: change events identify records by {ID} only",
            where=task.table,
            found=f"key: [{', '.join(task.schema.key)}]",
            allowed=f"key: [{ID}], which is the default",
            do="remove `key` from the table's rule",
        )
    if ID in task.rule.columns.hash:
        yield Problem(
            "SRC131",
            f"the {ID} of {task.table} cannot be hashed: rows that events do not contain are fetched by it",
            where=task.table,
            found=f"columns: {{hash: [{ID}]}}",
            allowed="hashes of other columns",
            do=f"remove {ID} from `hash`",
        )
    if task.rule.where or task.rule.snapshot.where or task.rule.snapshot.slices.column:
        yield Problem(
            "SRC018",
            f"row filters are not supported, but {task.table} has one",
            where=task.table,
            found="`where` in the table's rule",
            allowed="whole objects",
            do="remove `where` and filter in the target",
        )


def _not_queryable(task: TableTask, schema: ObjectSchema) -> Iterator[Problem]:
    if not schema.queryable:
        yield Problem(
            "SRC053",
            f"{task.table} cannot be queried, so it cannot be copied",
            where=task.table,
            found="queryable is false",
            do="remove it from the definition",
        )


def _hidden_columns(task: TableTask, schema: ObjectSchema) -> Iterator[Problem]:
    """Columns of the target that the user can no longer see. Their values would become NULL."""
    copied = dict.fromkeys(name for view in task.views if view.schema for name in view.schema.names)
    hidden = [name for name in copied if name not in schema.schema.names]
    if hidden:
        yield Problem(
            "SRC054",
            f"columns of the copy of {task.table} are hidden from the user, or deleted in the org",
            where=task.table,
            found=", ".join(hidden[:20]) + (f" and {len(hidden) - 20} more" if len(hidden) > 20 else ""),
            do="grant read access to these fields; if they were deleted: airflow cdc resync",
        )


def _not_carried(task: TableTask, channel: str) -> Problem:
    remedy = "add the object to the channel as a member"
    if channel == STANDARD_CHANNEL:
        remedy = "select the object under Setup, Change Data Capture"
    if single_entity(channel):
        remedy = f"use a channel of several objects: `channel: {STANDARD_CHANNEL}` under `source`"
    return Problem(
        "SRC050",
        f"channel {channel} does not carry the changes of {task.table}",
        where=task.table,
        found="not a member of the channel",
        do=f"{remedy}; then resync {task.table} if it was copied before",
    )


def _not_permitted(task: TableTask, channel: str) -> Problem:
    return Problem(
        "SRC055",
        f"the user has no permission to see every record of {task.table}",
        where=task.table,
        found=f"its single-object channel refuses the user; {channel} would omit its changes without an error",
        allowed="View All Records on the object; View All Data for Task and Event; View All Users for User",
        do="add the permission to a permission set of the integration user",
    )


def _filtered(task: TableTask, channel: str, expression: str) -> Problem:
    return Problem(
        "SRC051",
        f"channel {channel} filters the changes of {task.table}",
        where=task.table,
        found=f"filter {expression[:200]}",
        allowed="a channel member without filter",
        do=f"remove the filter, or create another channel; then resync {task.table}",
    )
