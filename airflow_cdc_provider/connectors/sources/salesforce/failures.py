"""Map Salesforce's error codes to exceptions. Pure.

REST responds with ``[{"errorCode": …, "message": …}]``, the Pub/Sub API with a code in the trailer ``error-code``.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.errors import (
    Blocked,
    CdcError,
    CheckFailed,
    PositionLost,
    Problem,
    SourceUnavailable,
    SourceUnreachable,
)

MAX_MESSAGE_LENGTH = 300


@dataclass(frozen=True)
class Failure:
    """``error`` is raised with a problem of ``code``, ``what`` and ``do``."""

    error: type[CdcError]
    code: str
    what: str
    do: str


NO_QUERY = (
    "leave the object out: Salesforce answers its queries only with a filter, or not at all; if it names a field, "
    "leave that out: `columns.exclude`"
)
NO_EVENTS = "run `airflow cdc check`; if it finds nothing, ask Salesforce's support what its words mean"
DEFER = "the next run continues from the same position; run less often or raise the limit"
FIND_OUT = "look up Salesforce's words, unknown to this provider: correct what they name, or leave the object out"
TOO_LARGE = Failure(
    CheckFailed, "SRC042", "the object is too large for the query", "leave columns out: columns.exclude"
)
REST: dict[str, Failure] = {
    "REQUEST_LIMIT_EXCEEDED": Failure(SourceUnreachable, "SRC040", "the org's daily API requests are used up", DEFER),
    "LIMIT_EXCEEDED": Failure(SourceUnreachable, "SRC040", "a limit of the org is used up", DEFER),
    "TXN_SECURITY_METERING_ERROR": Failure(
        CheckFailed,
        "SRC010",
        "a transaction security policy refuses the request",
        "exempt the integration user from the policy",
    ),
    "INVALID_SESSION_ID": Failure(SourceUnreachable, "CON009", "the session is refused", "check the app's policies"),
    "API_DISABLED_FOR_ORG": Failure(CheckFailed, "SRC010", "the API is switched off", "enable the API for the user"),
    "API_CURRENTLY_DISABLED": Failure(CheckFailed, "SRC010", "the API is switched off", "enable the API for the user"),
    "INSUFFICIENT_ACCESS": Failure(
        CheckFailed, "SRC010", "a privilege is missing", "run `airflow cdc check` for details"
    ),
    "API_ERROR": Failure(
        CheckFailed, "SRC010", "the request requires View All Data", "run `airflow cdc check` for details"
    ),
    "INVALID_TYPE": Failure(
        CheckFailed,
        "SRC042",
        "the object does not exist, or is hidden from the user",
        "run `airflow cdc check` for details",
    ),
    "INVALID_FIELD": Failure(
        SourceUnavailable,
        "SRC042",
        "a field was deleted, or is hidden from the user",
        "wait for the next try, which describes the object again",
    ),
    "MALFORMED_QUERY": Failure(CheckFailed, "SRC042", "the query is refused, and will be refused each time", NO_QUERY),
    "EXTERNAL_OBJECT_UNSUPPORTED_EXCEPTION": Failure(
        CheckFailed, "SRC042", "the query is refused, and will be refused each time", NO_QUERY
    ),
    "OPERATION_TOO_LARGE": TOO_LARGE,
    "QUERY_TOO_COMPLICATED": TOO_LARGE,
    "NOT_FOUND": Failure(
        CheckFailed, "SRC042", "the requested resource does not exist", "run `airflow cdc check` for details"
    ),
    "UNSUPPORTED_API_VERSION": Failure(CheckFailed, "SRC012", "the API version is retired", "update `api_version`"),
    "QUERY_TIMEOUT": Failure(SourceUnavailable, "SRC043", "the query took longer than two minutes", "try again"),
    "INVALID_QUERY_LOCATOR": Failure(SourceUnavailable, "SRC044", "the cursor of a query expired", "try again"),
    "INVALID_REPLICATION_DATE": Failure(
        Blocked, "SRC045", "the list of deleted records does not go back to the requested time", "airflow cdc resync"
    ),
    "EXCEEDED_ID_LIMIT": Failure(
        SourceUnavailable, "SRC045", "too many deleted records in one interval", "run more often"
    ),
}

BACK_OFF = Failure(SourceUnavailable, "CON013", "the Pub/Sub API failed", "try again")
MISUSE = Failure(CheckFailed, "SRC049", "the Pub/Sub API refuses the request, and will refuse it each time", NO_EVENTS)
UNKNOWN = Failure(CheckFailed, "SRC049", "the Pub/Sub API refuses the request for an unknown reason", FIND_OUT)
NO_PERMISSION = Failure(
    CheckFailed, "SRC048", "the user has no permission to read the channel", "grant View All Records on the object"
)
POSITION_LOST = Failure(PositionLost, "SRC013", "the channel no longer serves the position", "airflow cdc resync")

PREFIX = "sfdc.platform.eventbus.grpc."
PUBSUB: dict[str, Failure] = {
    "service.unavailable": BACK_OFF,
    "service.auth.error": Failure(SourceUnavailable, "CON009", "the token is refused", "check the app's policies"),
    "service.auth.headers.invalid": MISUSE,
    "service.auth.refresh.invalid": MISUSE,
    "service.protection.stream.limit.triggered": BACK_OFF,
    "service.protection.triggered": BACK_OFF,
    "service.tenant.license": Failure(
        CheckFailed, "SRC048", "the org has no licence for the Pub/Sub API", "contact Salesforce"
    ),
    "concurrent.client.limit.exceeded": Failure(
        SourceUnavailable, "SRC041", "too many clients read events at once", "stop other subscribers of the org"
    ),
    "topic.not.found": Failure(
        CheckFailed, "SRC048", "the channel does not exist", "select the objects under Setup, Change Data Capture"
    ),
    "topic.meta.permission": NO_PERMISSION,
    "subscription.topic.cannot.subscribe": NO_PERMISSION,
    "schema.meta.permission": NO_PERMISSION,
    "topic.api.unavailable": BACK_OFF,
    "schema.api.unavailable": BACK_OFF,
    "subscription.internal.error": BACK_OFF,
    "subscription.fetch.overflow": BACK_OFF,
    "subscription.fetch.replay.repeated": BACK_OFF,
    "subscription.fetch.replayid.corrupted": POSITION_LOST,
    "subscription.limit.exceeded": Failure(
        SourceUnavailable, "SRC041", "the org's event deliveries of the last 24 hours are used up", DEFER
    ),
}
DEFERRED = frozenset({"subscription.limit.exceeded", "concurrent.client.limit.exceeded"})
"""Not retried within a run: the retry would be refused, too."""

AUTH_ERROR = "service.auth.error"
CODES = {"UNAUTHENTICATED": AUTH_ERROR, "NOT_FOUND": "topic.not.found", "PERMISSION_DENIED": "topic.meta.permission"}
"""gRPC status -> code, for responses without a code."""


def rest_failure(status: int, code: str, message: str, where: str) -> CdcError:
    """``code`` is empty if the response has no Salesforce error body."""
    mapping = REST.get(code) or _mapping_of_status(status, code)
    found = f"HTTP {status} {code}: {_first_line(message)}".rstrip(": ")
    return mapping.error(Problem(mapping.code, mapping.what, where=where, found=found, do=mapping.do))


def pubsub_failure(code: str, status: str, message: str, where: str) -> CdcError:
    """``code`` is without prefix, empty if the trailer is missing. ``status`` is gRPC's status."""
    mapping = PUBSUB.get(code) or _mapping_of_grpc(code, status)
    found = f"{code or status}: {_first_line(message)}".rstrip(": ")
    data = "nothing was read after the last window" if mapping is POSITION_LOST else ""
    return mapping.error(Problem(mapping.code, mapping.what, where=where, found=found, do=mapping.do, data=data))


def _mapping_of_grpc(code: str, status: str) -> Failure:
    if code:
        return UNKNOWN
    return BACK_OFF if status in TRANSIENT else MISUSE


TRANSIENT = frozenset({"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "UNKNOWN"})
"""Network failures. RESOURCE_EXHAUSTED without a code means that a message is too large."""


def _mapping_of_status(status: int, code: str) -> Failure:
    if status == 429 or status >= 500 or status == 406:
        return Failure(SourceUnreachable, "CON013", "the server failed", "try again")
    if status < 400:
        return Failure(CheckFailed, "CON011", "the org redirects to another address", "correct `instance_url`")
    if status == 401:
        return REST["INVALID_SESSION_ID"]
    if status == 410:
        return REST["UNSUPPORTED_API_VERSION"]
    if status == 403:
        return REST["INSUFFICIENT_ACCESS"]
    if status == 404 or code.startswith("INVALID_"):
        return REST["NOT_FOUND"]
    return Failure(CheckFailed, "SRC042", "the org refuses the request for an unknown reason", FIND_OUT)


def _first_line(message: str) -> str:
    """Salesforce's messages name objects and fields. Further lines may quote the request."""
    return message.strip().splitlines()[0][:MAX_MESSAGE_LENGTH] if message.strip() else ""
