"""All HTTP routes, and the steps that are common to all requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, not_found
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, error_response, json_response
from airflow_cdc_provider.sandbox.salesforce.rest import (
    admin,
    bulk,
    collections,
    describing,
    limits,
    querying,
    records,
    replication,
    tokens,
    tooling,
)
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User, require_session

DATA = r"/services/data/(v\d+\.\d)"
ID = r"([A-Za-z0-9]{15}|[A-Za-z0-9]{18})"
NAME = r"(\w+)"
TOKEN = r"/services/oauth2/token"

# Without a token: method, path, handler
PUBLIC: list[tuple[str, str, Callable[..., Response]]] = [
    ("POST", TOKEN, tokens.token),
    ("GET", r"/services/data/?", describing.versions),
    ("GET", r"/admin/org", admin.org_info),
    ("GET", r"/admin/ledger", admin.commits),
    ("GET", rf"/admin/ledger/{NAME}", admin.state),
    ("POST", rf"/admin/{NAME}", admin.command),
]
MAX_SUBREQUESTS = 25


def composite(org: OrgState, request: Request, user: User, version: str) -> Response:
    """Several requests in one, which counts as one. References between them and allOrNone are not supported."""
    subrequests = request.fields().get("compositeRequest", [])
    if len(subrequests) > MAX_SUBREQUESTS:
        raise ApiError(400, "LIMIT_EXCEEDED", f"The limit of {MAX_SUBREQUESTS} subrequests is exceeded.")
    return json_response({"compositeResponse": [_subresponse(org, request, user, one) for one in subrequests]})


def _subresponse(org: OrgState, request: Request, user: User, subrequest: dict[str, Any]) -> dict[str, Any]:
    target = urlsplit(subrequest["url"])
    body = json.dumps(subrequest["body"]).encode() if "body" in subrequest else b""
    query = dict(parse_qsl(target.query))
    try:
        response = _resource(
            org, Request(subrequest["method"], unquote(target.path), query, request.headers, body), user
        )
    except ApiError as error:
        response = error_response(error)
    return {
        "body": json.loads(response.body) if response.body else None,
        "httpHeaders": dict(response.headers),
        "httpStatusCode": response.status,
        "referenceId": subrequest["referenceId"],
    }


# With a token.
AUTHENTICATED: list[tuple[str, str, Callable[..., Response]]] = [
    ("GET", r"/services/oauth2/userinfo", tokens.userinfo),
    ("GET", rf"{DATA}/?", describing.resources),
    ("GET", rf"{DATA}/sobjects/?", describing.all_objects),
    ("GET", rf"{DATA}/sobjects/{NAME}/?", describing.one_object),
    ("GET", rf"{DATA}/sobjects/{NAME}/describe/?", describing.describe),
    ("GET", rf"{DATA}/sobjects/{NAME}/eventSchema", describing.event_schema),
    ("GET", rf"{DATA}/event/eventSchema/([\w-]+)", describing.schema_by_id),
    ("GET", rf"{DATA}/sobjects/{NAME}/updated/?", replication.updated),
    ("GET", rf"{DATA}/sobjects/{NAME}/deleted/?", replication.deleted),
    ("POST", rf"{DATA}/sobjects/{NAME}/?", records.create),
    ("GET", rf"{DATA}/sobjects/{NAME}/{ID}", records.read),
    ("GET", rf"{DATA}/sobjects/{NAME}/{ID}/{NAME}", records.blob),
    ("PATCH", rf"{DATA}/sobjects/{NAME}/{ID}", records.update),
    ("DELETE", rf"{DATA}/sobjects/{NAME}/{ID}", records.delete),
    ("GET", rf"{DATA}/sobjects/{NAME}/{NAME}/([^/]+)", records.read_by_key),
    ("PATCH", rf"{DATA}/sobjects/{NAME}/{NAME}/([^/]+)", records.upsert),
    ("GET", rf"{DATA}/query/?", querying.query),
    ("GET", rf"{DATA}/queryAll/?", querying.query_all),
    ("GET", rf"{DATA}/query(?:All)?/([\w-]+)", querying.query_more),
    ("GET", rf"{DATA}/tooling/query/?", tooling.query),
    ("POST", rf"{DATA}/composite/sobjects/?", collections.create),
    ("PATCH", rf"{DATA}/composite/sobjects/?", collections.update),
    ("DELETE", rf"{DATA}/composite/sobjects/?", collections.delete),
    ("POST", rf"{DATA}/composite/sobjects/{NAME}", collections.retrieve),
    ("GET", rf"{DATA}/composite/sobjects/{NAME}", collections.retrieve_by_url),
    ("POST", rf"{DATA}/jobs/query/?", bulk.create),
    ("GET", rf"{DATA}/jobs/query/?", bulk.all_jobs),
    ("GET", rf"{DATA}/jobs/query/{ID}", bulk.status),
    ("PATCH", rf"{DATA}/jobs/query/{ID}", bulk.change),
    ("DELETE", rf"{DATA}/jobs/query/{ID}", bulk.delete),
    ("GET", rf"{DATA}/jobs/query/{ID}/results", bulk.results),
    ("GET", rf"{DATA}/jobs/query/{ID}/resultPages", bulk.result_pages),
    ("GET", rf"{DATA}/limits/?", limits.limits),
    ("GET", rf"{DATA}/limits/recordCount/?", limits.record_counts),
    ("POST", rf"{DATA}/composite/?", composite),
]
PUBLIC_ROUTES = [(method, re.compile(path), handler) for method, path, handler in PUBLIC]
AUTHENTICATED_ROUTES = [(method, re.compile(path), handler) for method, path, handler in AUTHENTICATED]


def handle(org: OrgState, request: Request) -> Response:
    """Check for faults, except in admin commands; then for the session; then call the handler."""
    fault = None if request.path.startswith("/admin/") else org.faults.http_fault(f"{request.method} {request.path}")
    if fault is not None:
        return _fault_response(request, fault)
    usage: dict[str, str] = {}
    try:
        for method, path, handler in PUBLIC_ROUTES:
            found = path.fullmatch(request.path)
            if method == request.method and found:
                return handler(org, request, *found.groups())
        usage = _count(org)
        response = _resource(org, request, require_session(org.tokens.user(request.token)))
        return Response(
            response.status, response.body, response.content_type, {**response.headers, **usage}, response.cut
        )
    except ApiError as error:
        return error_response(error, usage)


def _resource(org: OrgState, request: Request, user: User) -> Response:
    for method, path, handler in AUTHENTICATED_ROUTES:
        found = path.fullmatch(request.path)
        if method == request.method and found:
            return handler(org, request, user, *found.groups())
    raise not_found()


def _fault_response(request: Request, fault: HttpFault) -> Response:
    """The token endpoint has a different format of errors."""
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    if re.fullmatch(TOKEN, request.path):
        return json_response({"error": fault.code, "error_description": fault.message}, fault.status, headers)
    return error_response(ApiError(fault.status, fault.code, fault.message), headers)


def _count(org: OrgState) -> dict[str, str]:
    """The header with the usage. Raises ApiError REQUEST_LIMIT_EXCEEDED (403) at the daily limit of requests."""
    if org.faults.tokens_expire_now():
        org.tokens.expire()
    if org.requests >= org.request_limit:
        raise ApiError(403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded.")
    org.requests += 1
    return {"Sforce-Limit-Info": f"api-usage={org.requests}/{org.request_limit}"}
