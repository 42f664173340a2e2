"""One record: create, read, update, delete, upsert. Each write is a transaction."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, is_deleted, no_such_field, not_found
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.ids import full
from airflow_cdc_provider.sandbox.salesforce.objects import DELETED, ID, ObjectType, Row
from airflow_cdc_provider.sandbox.salesforce.rest.rendering import renderer
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.storage import Table
from airflow_cdc_provider.sandbox.salesforce.users import User


def create(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    table = visible_table(org, user, name)
    with org.transaction(user) as transaction:
        record = transaction.insert(table.type.name, request.fields())
    return json_response({"id": record, "success": True, "errors": []}, 201)


def read(org: OrgState, request: Request, user: User, version: str, name: str, record: str) -> Response:
    table = visible_table(org, user, name)
    row = visible_row(table, user, record)
    names = [one for one in request.query.get("fields", "").split(",") if one]
    fields = chosen_fields(table.type, user, names) if names else user.fields(table.type)
    return json_response(renderer(table.type, fields, version, org.clock.second())(row))


def blob(org: OrgState, request: Request, user: User, version: str, name: str, record: str, field: str) -> Response:
    """The bytes of a base64 field."""
    table = visible_table(org, user, name)
    row = visible_row(table, user, record)
    (found,) = chosen_fields(table.type, user, [field])
    if found.kind != "base64":
        raise not_found()
    content = base64.b64decode(row[table.type.slots[found.name]] or "")
    return Response(200, content, "application/octet-stream")


def update(org: OrgState, request: Request, user: User, version: str, name: str, record: str) -> Response:
    table = visible_table(org, user, name)
    visible_row(table, user, record)
    with org.transaction(user) as transaction:
        transaction.update(table.type.name, record, request.fields())
    return Response(204)


def delete(org: OrgState, request: Request, user: User, version: str, name: str, record: str) -> Response:
    table = visible_table(org, user, name)
    visible_row(table, user, record)
    with org.transaction(user) as transaction:
        transaction.delete(table.type.name, record)
    return Response(204)


def read_by_key(
    org: OrgState, request: Request, user: User, version: str, name: str, field: str, value: str
) -> Response:
    """Read a record by an external id."""
    record = _record_with_key(org, visible_table(org, user, name), user, field, value)
    if record is None:
        raise not_found()
    return read(org, request, user, version, name, record)


def upsert(org: OrgState, request: Request, user: User, version: str, name: str, field: str, value: str) -> Response:
    """Upsert by an external id. 201 for a new record, 200 for an existing one."""
    table = visible_table(org, user, name)
    with org.transaction(user) as transaction:
        existing = _record_with_key(org, table, user, field, value)
        if existing:
            transaction.update(table.type.name, existing, request.fields())
        record = existing or transaction.insert(table.type.name, {**request.fields(), field: value})
    body = {"id": record, "success": True, "errors": [], "created": existing is None}
    return json_response(body, 200 if existing else 201)


def _record_with_key(org: OrgState, table: Table, user: User, field: str, value: str) -> str | None:
    """The id of the record with this external id. Raises ApiError (300) if there are several."""
    (key,) = chosen_fields(table.type, user, [field])
    if not key.external_id:
        raise ApiError(400, "NOT_FOUND", f"Provided external ID field does not exist or is not accessible: {field}")
    slot, sees = table.type.slots[key.name], user.sees(table.type)
    with org.store.lock:
        found = [row[ID] for row in table.visible() if row[slot] == value and sees(row)]
    if len(found) > 1:
        raise ApiError(300, "MULTIPLE_CHOICES", f"{len(found)} records have {field} = {value}")
    return found[0] if found else None


def visible_table(org: OrgState, user: User, name: str) -> Table:
    """Raises ApiError NOT_FOUND (404): an unknown object in a path is an unknown resource."""
    try:
        table = org.store.table(name)
        user.require(table.type)
    except ApiError as error:
        raise not_found() from error
    return table


def visible_row(table: Table, user: User, record: str) -> Row:
    """Raises ApiError NOT_FOUND or ENTITY_IS_DELETED (404)."""
    row = table.rows.get(full(record))
    if row is None or not user.sees(table.type)(row):
        raise not_found()
    if row[DELETED]:
        raise is_deleted()
    return row


def chosen_fields(object_type: ObjectType, user: User, names: Sequence[Any]) -> list[Field]:
    """Raises ApiError INVALID_FIELD (400) for a field that is unknown or hidden."""
    known = {field.name.lower(): field for field in user.fields(object_type)}
    for name in names:
        if str(name).lower() not in known:
            raise no_such_field(str(name), object_type.name)
    return [known[str(name).lower()] for name in names]
