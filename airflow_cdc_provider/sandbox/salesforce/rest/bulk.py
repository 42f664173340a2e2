"""Bulk API 2.0: query jobs."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.sandbox.salesforce.bulk_csv import DELIMITERS, LINE_ENDS, csv_text
from airflow_cdc_provider.sandbox.salesforce.bulk_jobs import Job
from airflow_cdc_provider.sandbox.salesforce.clock import moment_text
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.http import CSV_TYPE, Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.soql.parse import parse
from airflow_cdc_provider.sandbox.salesforce.soql.run import named_fields
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User

PAGES = 5


def create(org: OrgState, request: Request, user: User, version: str) -> Response:
    """Bulk API rejects some objects, compound fields, blobs, COUNT and OFFSET."""
    body = request.fields()
    operation = body.get("operation", "query")
    if operation not in ("query", "queryAll"):
        raise ApiError(400, "INVALIDJOB", f"Unable to find operation: {operation}")
    delimiter, line_end = body.get("columnDelimiter", "COMMA"), body.get("lineEnding", "LF")
    if delimiter not in DELIMITERS or line_end not in LINE_ENDS or body.get("contentType", "CSV") != "CSV":
        raise ApiError(400, "INVALIDJOB", "unsupported content type, column delimiter or line ending")
    text = str(body.get("query", ""))
    asked = parse(text)
    table = org.store.table(asked.object)
    user.require(table.type)
    if not table.type.bulk or not table.type.queryable:
        message = f"INVALIDENTITY: Entity '{table.type.name}' is not supported by the Bulk API."
        raise ApiError(400, "INVALIDENTITY", message)
    if asked.counts or asked.offset:
        raise ApiError(400, "API_ERROR", "Aggregate queries and OFFSET are not supported by Bulk API 2.0")
    fields = named_fields(asked, table.type, user)
    for field in fields:
        if field.kind in ("address", "location", "base64"):
            what = "compound" if field.kind != "base64" else "binary"
            message = f"Selecting {what} data not supported in Bulk Query: {field.name}"
            raise ApiError(400, "FUNCTIONALITY_NOT_ENABLED", message)
    now = org.clock.now_ms()
    key = org.bulk.new_id()
    job = Job(key, version, operation, text, asked, table.type, fields, user, delimiter, line_end, now)
    created = json_response(_job_info(org, job))
    org.bulk.start(job)
    return created


def status(org: OrgState, request: Request, user: User, version: str, key: str) -> Response:
    return json_response(_job_info(org, org.bulk.find(key)))


def all_jobs(org: OrgState, request: Request, user: User, version: str) -> Response:
    return json_response(
        {"done": True, "nextRecordsUrl": None, "records": [_job_info(org, job) for job in org.bulk.all()]}
    )


def change(org: OrgState, request: Request, user: User, version: str, key: str) -> Response:
    if request.fields().get("state") != "Aborted":
        raise ApiError(400, "INVALIDJOBSTATE", "a query job can only be aborted")
    job = org.bulk.find(key)
    org.bulk.abort(job)
    return json_response(_job_info(org, job))


def delete(org: OrgState, request: Request, user: User, version: str, key: str) -> Response:
    org.bulk.delete(org.bulk.find(key))
    return Response(204)


def results(org: OrgState, request: Request, user: User, version: str, key: str) -> Response:
    """A page of CSV, with the locator of the next one. The same locator returns the same page again."""
    job = _finished(org, key, version)
    start = _start(request.query.get("locator", ""))
    rows = job.rows[start : start + _page_rows(org, request)]
    end = start + len(rows)
    body = csv_text(job, rows, org.clock.second(), org.bulk.scientific)
    headers = {"Sforce-NumberOfRecords": str(len(rows)), "Sforce-Locator": _locator(end, len(job.rows)) or "null"}
    cut = len(body) // 2 if org.faults.take("truncate_csv") else None
    return Response(200, body, CSV_TYPE, headers, cut)


def result_pages(org: OrgState, request: Request, user: User, version: str, key: str) -> Response:
    """The URLs of up to five pages, which can be read in parallel, and the URL of the next five."""
    job = _finished(org, key, version)
    base = f"/services/data/{version}/jobs/query/{key}"
    start, rows = _start(request.query.get("locator", "")), _page_rows(org, request)
    starts = list(range(start, max(len(job.rows), 1), rows))
    pages = []
    for at in starts[:PAGES]:
        locator = _locator(at, len(job.rows) + 1) if at else None
        option = f"locator={locator}&" if locator else ""
        pages.append({"resultUrl": f"{base}/results?{option}maxRecords={rows}"})
    more = None
    if len(starts) > PAGES:
        more = f"{base}/resultPages?locator={_locator(starts[PAGES], len(job.rows) + 1)}&maxRecords={rows}"
    return json_response({"resultPages": pages, "nextRecordsUrl": more, "done": more is None})


def _job_info(org: OrgState, job: Job) -> dict[str, Any]:
    created = moment_text(job.created_ms)[:-1] + "+0000"
    info: dict[str, Any] = {
        "id": job.id,
        "operation": job.operation,
        "object": job.object.name,
        "createdById": job.user.id,
        "createdDate": created,
        "systemModstamp": created,
        "state": job.state,
        "concurrencyMode": "Parallel",
        "contentType": "CSV",
        "apiVersion": float(job.version.removeprefix("v")),
        "lineEnding": job.line_end,
        "columnDelimiter": job.delimiter,
    }
    if job.state != "UploadComplete":
        info |= {"jobType": "V2Query", "numberRecordsProcessed": len(job.rows), "retries": 0, "totalProcessingTime": 1}
        info["isPkChunkingSupported"] = not job.ordered
    if job.error:
        info["errorMessage"] = job.error
    return info


def _finished(org: OrgState, key: str, version: str) -> Job:
    job = org.bulk.find(key, version)
    if job.state != "JobComplete":
        raise ApiError(400, "INVALIDJOBSTATE", f"results are not available while the job is {job.state}")
    return job


def _page_rows(org: OrgState, request: Request) -> int:
    return max(1, request.number("maxRecords", org.bulk.page_rows))


def _locator(start: int, count: int) -> str | None:
    """Opaque to clients. None at the end."""
    return f"MT{start:x}Z" if start < count else None


def _start(locator: str) -> int:
    if not locator:
        return 0
    try:
        if locator[:2] != "MT" or locator[-1] != "Z":
            raise ValueError(locator)
        return int(locator[2:-1], 16)
    except ValueError as error:
        raise ApiError(400, "API_ERROR", f"invalid locator: {locator}") from error
