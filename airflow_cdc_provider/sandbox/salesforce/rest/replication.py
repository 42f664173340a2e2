"""The records that were changed or deleted in a time span: sobjects/…/updated and …/deleted."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds, stamp
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.objects import DELETED, ID, MODSTAMP
from airflow_cdc_provider.sandbox.salesforce.rest.records import visible_table
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.storage import Table
from airflow_cdc_provider.sandbox.salesforce.users import User

MAX_IDS = 600_000
UPDATED_DAYS, DELETED_DAYS = 30, 15
DAY_MS = 86_400_000


def updated(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    table = _replicated(org, user, name)
    start, end = _span(org, request, UPDATED_DAYS)
    sees = user.sees(table.type)
    with org.store.lock:
        ids = [
            row[ID] for row in table.rows.values() if start <= row[MODSTAMP] < end and not row[DELETED] and sees(row)
        ]
    return json_response({"ids": _limited(ids), "latestDateCovered": _covered(org, end)})


def deleted(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    table = _replicated(org, user, name)
    start, end = _span(org, request, DELETED_DAYS)
    earliest = max(org.delete_log_since, stamp(org.clock.now_ms() - DELETED_DAYS * DAY_MS))
    if start < earliest and org.delete_log_since > stamp(0):
        raise ApiError(400, "INVALID_REPLICATION_DATE", "startDate before org replication enabled date")
    with org.store.lock:
        gone = [
            {"id": record, "deletedDate": _shown(second)}
            for second, record in table.delete_log
            if start <= second < end and (record not in table.rows or table.rows[record][DELETED])
        ]
    body = {"deletedRecords": _limited(gone), "earliestDateAvailable": _shown(earliest)}
    return json_response(body | {"latestDateCovered": _covered(org, end)})


def _replicated(org: OrgState, user: User, name: str) -> Table:
    table = visible_table(org, user, name)
    if not table.type.replicateable:
        message = f"Entity type {table.type.name} is not replicateable"
        raise ApiError(400, "INVALID_TYPE_FOR_OPERATION", message)
    return table


def _span(org: OrgState, request: Request, days: int) -> tuple[str, str]:
    """Start and end, rounded down to minutes."""
    try:
        # An unescaped plus sign arrives as a space.
        start, end = (milliseconds(request.query[name].replace(" ", "+")) for name in ("start", "end"))
    except (KeyError, ValueError) as error:
        message = "start and end must be timestamps with a time zone"
        raise ApiError(400, "INVALID_REPLICATION_DATE", message) from error
    if end - start <= 60_000:
        raise ApiError(400, "INVALID_REPLICATION_DATE", "endDate must be at least one minute greater than startDate")
    if start < org.clock.now_ms() - days * DAY_MS:
        message = f"startDate cannot be more than {days} days ago"
        raise ApiError(400, "INVALID_REPLICATION_DATE", message)
    return stamp(start // 60_000 * 60_000), stamp(end // 60_000 * 60_000)


def _covered(org: OrgState, end: str) -> str:
    """The end, or the start of the oldest open transaction if that is earlier."""
    return _shown(min(end, org.earliest_open() or end))


def _limited(found: list[Any]) -> list[Any]:
    if len(found) > MAX_IDS:
        raise ApiError(400, "EXCEEDED_ID_LIMIT", f"more than {MAX_IDS} records")
    return found


def _shown(second: str) -> str:
    return f"{second[:-1]}+0000"
