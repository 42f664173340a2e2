"""What Salesforce's error codes mean to us. Pure.

REST answers with ``[{"errorCode": …, "message": …}]``; the Pub/Sub API with a code in the trailer ``error-code``.
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
)

LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Meaning:
    """``error`` is raised with ``code``; ``what`` and ``do`` are for the operator."""

    error: type[CdcError]
    code: str
    what: str
    do: str


DEFER = "the next run goes on from the same position; run less often or buy more"
REST: dict[str, Meaning] = {
    "REQUEST_LIMIT_EXCEEDED": Meaning(SourceUnavailable, "SRC040", "the org's daily API requests are used up", DEFER),
    "LIMIT_EXCEEDED": Meaning(SourceUnavailable, "SRC040", "a limit of the org is used up", DEFER),
    "TXN_SECURITY_METERING_ERROR": Meaning(
        CheckFailed,
        "SRC010",
        "a transaction security policy refuses the request",
        "exempt the integration user from it",
    ),
    "INVALID_SESSION_ID": Meaning(SourceUnavailable, "CON009", "the session is refused", "check the app's policies"),
    "API_DISABLED_FOR_ORG": Meaning(CheckFailed, "SRC010", "the API is switched off", "enable the API for the user"),
    "API_CURRENTLY_DISABLED": Meaning(CheckFailed, "SRC010", "the API is switched off", "enable the API for the user"),
    "INSUFFICIENT_ACCESS": Meaning(CheckFailed, "SRC010", "a right is missing", "see `airflow cdc check`"),
    "API_ERROR": Meaning(CheckFailed, "SRC010", "the request needs View All Data", "see `airflow cdc check`"),
    "INVALID_TYPE": Meaning(
        CheckFailed, "SRC042", "there is no such object, or it is hidden", "see `airflow cdc check`"
    ),
    "INVALID_FIELD": Meaning(SourceUnavailable, "SRC042", "a field is gone or hidden", "the next try describes anew"),
    "MALFORMED_QUERY": Meaning(CheckFailed, "SRC042", "the query is refused", "report it: this is a mistake of ours"),
    "NOT_FOUND": Meaning(CheckFailed, "SRC042", "there is no such thing", "see `airflow cdc check`"),
    "UNSUPPORTED_API_VERSION": Meaning(CheckFailed, "SRC012", "the API version is retired", "mend `api_version`"),
    "QUERY_TIMEOUT": Meaning(SourceUnavailable, "SRC043", "the query took longer than two minutes", "try again"),
    "INVALID_QUERY_LOCATOR": Meaning(SourceUnavailable, "SRC044", "the cursor of a query expired", "try again"),
    "INVALID_REPLICATION_DATE": Meaning(
        Blocked, "SRC045", "the list of deleted records does not reach back so far", "airflow cdc resync"
    ),
    "EXCEEDED_ID_LIMIT": Meaning(SourceUnavailable, "SRC045", "too many records in one interval", "a shorter interval"),
}

BACK_OFF = Meaning(SourceUnavailable, "CON013", "the Pub/Sub API failed", "try again")
MISUSE = Meaning(CheckFailed, "SRC049", "the Pub/Sub API refuses the request", "report it: this is a mistake of ours")
NO_RIGHT = Meaning(CheckFailed, "SRC048", "the user may not read the channel", "grant View All on the object")
LOST = Meaning(PositionLost, "SRC013", "the channel no longer serves our position", "airflow cdc resync")

PREFIX = "sfdc.platform.eventbus.grpc."
PUBSUB: dict[str, Meaning] = {
    "service.unavailable": BACK_OFF,
    "service.auth.error": Meaning(SourceUnavailable, "CON009", "the token is refused", "check the app's policies"),
    "service.auth.headers.invalid": MISUSE,
    "service.auth.refresh.invalid": MISUSE,
    "service.protection.stream.limit.triggered": BACK_OFF,
    "service.protection.triggered": BACK_OFF,
    "service.tenant.license": Meaning(CheckFailed, "SRC048", "the org has no licence for it", "ask Salesforce"),
    "concurrent.client.limit.exceeded": Meaning(
        SourceUnavailable, "SRC041", "too many clients read events at once", "stop other subscribers of the org"
    ),
    "topic.not.found": Meaning(
        CheckFailed, "SRC048", "there is no such channel", "select the objects under Setup, Change Data Capture"
    ),
    "topic.meta.permission": NO_RIGHT,
    "subscription.topic.cannot.subscribe": NO_RIGHT,
    "schema.meta.permission": NO_RIGHT,
    "topic.api.unavailable": BACK_OFF,
    "schema.api.unavailable": BACK_OFF,
    "subscription.internal.error": BACK_OFF,
    "subscription.fetch.overflow": BACK_OFF,
    "subscription.fetch.replay.repeated": BACK_OFF,
    "subscription.fetch.replayid.corrupted": LOST,
    "subscription.limit.exceeded": Meaning(
        SourceUnavailable, "SRC041", "the org's event deliveries of the last 24 hours are used up", DEFER
    ),
}
DEFERRED = frozenset({"subscription.limit.exceeded", "concurrent.client.limit.exceeded"})
"""To connect again at once would only be refused again."""

AUTH_ERROR = "service.auth.error"
CODES = {"UNAUTHENTICATED": AUTH_ERROR, "NOT_FOUND": "topic.not.found", "PERMISSION_DENIED": "topic.meta.permission"}
"""What gRPC's own status stands for where the code is missing."""


def rest_failure(status: int, code: str, message: str, where: str) -> CdcError:
    """``code`` is empty where the answer was no error body of Salesforce."""
    meaning = REST.get(code) or _by_status(status, code)
    found = f"HTTP {status} {code}: {_short(message)}".rstrip(": ")
    return meaning.error(Problem(meaning.code, meaning.what, where=where, found=found, do=meaning.do))


def pubsub_failure(code: str, status: str, message: str, where: str) -> CdcError:
    """``code`` without its prefix, empty where the trailer was missing; ``status`` is gRPC's own."""
    meaning = PUBSUB.get(code, BACK_OFF if not code and status in UNANSWERED else MISUSE)
    found = f"{code or status}: {_short(message)}".rstrip(": ")
    data = "nothing was read beyond the last window" if meaning is LOST else ""
    return meaning.error(Problem(meaning.code, meaning.what, where=where, found=found, do=meaning.do, data=data))


UNANSWERED = frozenset({"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "UNKNOWN"})
"""What the network does to a call. RESOURCE_EXHAUSTED without a code is a message that is too large."""


def _by_status(status: int, code: str) -> Meaning:
    if status == 429 or status >= 500 or status == 406:
        return Meaning(SourceUnavailable, "CON013", "the server failed", "try again")
    if status < 400:
        return Meaning(CheckFailed, "CON011", "the org answers from another address", "mend `instance_url`")
    if status == 401:
        return REST["INVALID_SESSION_ID"]
    if status == 410:
        return REST["UNSUPPORTED_API_VERSION"]
    if status == 403:
        return REST["INSUFFICIENT_ACCESS"]
    if status == 404 or code.startswith("INVALID_"):
        return REST["NOT_FOUND"]
    return REST["MALFORMED_QUERY"]


def _short(message: str) -> str:
    """The first line. Salesforce's messages name objects and fields; what follows may quote the request."""
    return message.strip().splitlines()[0][:LONGEST_MESSAGE] if message.strip() else ""
