"""Tooling API: the members of channels with their filters and enriched fields."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from airflow_cdc_provider.sandbox.salesforce.channels import STANDARD, Member
from airflow_cdc_provider.sandbox.salesforce.errors import no_such_object
from airflow_cdc_provider.sandbox.salesforce.fields import Field, text
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.ids import record_id
from airflow_cdc_provider.sandbox.salesforce.objects import SYSTEM_SLOTS, ObjectType, object_type
from airflow_cdc_provider.sandbox.salesforce.rest.rendering import renderer
from airflow_cdc_provider.sandbox.salesforce.soql.parse import parse
from airflow_cdc_provider.sandbox.salesforce.soql.run import find_rows, named_fields
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.storage import Table
from airflow_cdc_provider.sandbox.salesforce.users import User


def _type(name: str, prefix: str, *fields: str) -> ObjectType:
    identity = Field("Id", "id", None, length=18)
    return object_type(name, prefix, [identity, *(text(field) for field in fields)])


CHANNEL = _type("PlatformEventChannel", "0YL", "DeveloperName", "MasterLabel", "ChannelType")
MEMBER_FIELDS = ("DeveloperName", "MasterLabel", "EventChannel", "SelectedEntity", "FilterExpression")
MEMBER = _type("PlatformEventChannelMember", "0v8", *MEMBER_FIELDS)
ENRICHED = _type("EnrichedField", "12v", "ChannelMemberId", "Field")


def query(org: OrgState, request: Request, user: User, version: str) -> Response:
    """Query custom channels, members of all channels, or enriched fields."""
    asked = parse(request.query.get("q", ""))
    members = _members(org)
    tables = {table.type.name: table for table in (_channels(org), members, _enriched(org, members))}
    if asked.object not in tables:
        raise no_such_object(asked.object)
    table, now = tables[asked.object], org.clock.second()
    render = renderer(table.type, named_fields(asked, table.type, user), f"{version}/tooling", now)
    records = [render(row) for row in find_rows(asked, table, user, False, now)]
    return json_response({"size": len(records), "totalSize": len(records), "done": True, "records": records})


def _table(one: ObjectType, rows: Iterable[tuple[str | None, ...]], numbers: Iterable[int] | None = None) -> Table:
    """``numbers``: of the records; None to count them."""
    table = Table(one)
    for number, values in zip(numbers or count(1), rows, strict=False):
        key = record_id(one.prefix, number)
        table.rows[key] = (key, False, *[None] * (len(SYSTEM_SLOTS) - 3), False, *values)
    return table


def _channels(org: OrgState) -> Table:
    return _table(CHANNEL, [(name.removesuffix("__chn"), name, "data") for name in org.channels.custom])


def _members(org: OrgState) -> Table:
    rows: list[tuple[str | None, ...]] = []
    numbers = {name: number for number, name in enumerate(org.channels.custom, 1)}
    for channel, member in _all_members(org):
        reference = channel if channel == STANDARD else record_id(CHANNEL.prefix, numbers[channel])
        event = org.store.table(member.entity).type.event_name
        name = f"{channel}_{event}".replace("__", "_")
        rows.append((name, name, reference, event, member.filter_expression))
    return _table(MEMBER, rows, [member.number for _, member in _all_members(org)])


def _enriched(org: OrgState, members: Table) -> Table:
    both = zip(members.rows, _all_members(org), strict=True)
    return _table(ENRICHED, [(key, name) for key, (_, member) in both for name in member.enriched])


def _all_members(org: OrgState) -> list[tuple[str, Member]]:
    channels = {STANDARD: org.channels.selected} | org.channels.custom
    return [(channel, member) for channel, members in channels.items() for member in members]
