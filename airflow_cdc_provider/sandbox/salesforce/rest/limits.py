"""The limits of the org and what remains of them, and the numbers of its records."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

BULK_JOBS, BULK_MB = 10_000, 976_562


def limits(org: OrgState, request: Request, user: User, version: str) -> Response:
    usage = {
        "DailyApiRequests": (org.request_limit, org.requests),
        "DailyBulkV2QueryJobs": (BULK_JOBS, len(org.bulk.all())),
        "DailyBulkV2QueryFileStorageMB": (BULK_MB, 0),
        "DailyDeliveredPlatformEvents": (org.bus.allocation, org.bus.delivered),
        "MonthlyPlatformEvents": (org.bus.allocation * 30, org.bus.delivered),
    }
    return json_response(
        {name: {"Max": limit, "Remaining": max(0, limit - used)} for name, (limit, used) in usage.items()}
    )


def record_counts(org: OrgState, request: Request, user: User, version: str) -> Response:
    """Without deleted records, and without objects that do not exist. The service counts from time to time, the sandbox
    at each request."""
    names = {name for name in request.query.get("sObjects", "").split(",") if name}
    with org.store.lock:
        counts = [
            {"name": table.type.name, "count": sum(1 for _ in table.visible())}
            for table in org.store.tables.values()
            if (not names or table.type.name in names) and user.access_to(table.type.name) is not Access.NONE
        ]
    return json_response({"sObjects": counts})
