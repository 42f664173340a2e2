"""The limits of the org and what remains of them."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User

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
