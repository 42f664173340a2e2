"""Tooling API: which objects each channel carries, and under which filter."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.sandbox.salesforce.channels import STANDARD
from airflow_cdc_provider.sandbox.salesforce.errors import no_such_object
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, answer
from airflow_cdc_provider.sandbox.salesforce.ids import record_id
from airflow_cdc_provider.sandbox.salesforce.soql.parse import parse
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User


def query(org: OrgState, request: Request, user: User, version: str) -> Response:
    """PlatformEventChannel, PlatformEventChannelMember, EnrichedField; conditions are not looked at."""
    asked = parse(request.query.get("q", ""))
    tables = {
        "PlatformEventChannel": _channels(org),
        "PlatformEventChannelMember": _members(org),
        "EnrichedField": [],
    }
    if asked.object not in tables:
        raise no_such_object(asked.object)
    found = tables[asked.object]
    base = f"/services/data/{version}/tooling/sobjects/{asked.object}"
    records = [
        {"attributes": {"type": asked.object, "url": f"{base}/{row['Id']}"}}
        | {name: row.get(name) for name in asked.fields}
        for row in found
    ]
    return answer({"size": len(records), "totalSize": len(records), "done": True, "records": records})


def _channels(org: OrgState) -> list[dict[str, Any]]:
    names = [STANDARD, *org.channels.custom]
    return [
        {"Id": record_id("0YL", number), "DeveloperName": name.removesuffix("__chn"), "ChannelType": "data"}
        | {"MasterLabel": name}
        for number, name in enumerate(names, 1)
    ]


def _members(org: OrgState) -> list[dict[str, Any]]:
    channels = {STANDARD: org.channels.selected} | org.channels.custom
    listed = [(channel, member) for channel, members in channels.items() for member in members]
    return [
        {
            "Id": record_id("0v8", number),
            "EventChannel": channel,
            "SelectedEntity": org.store.table(member.entity).type.event_name,
            "FilterExpression": member.filter_expression,
            "DeveloperName": f"{channel}_{org.store.table(member.entity).type.event_name}",
        }
        for number, (channel, member) in enumerate(listed, 1)
    ]
