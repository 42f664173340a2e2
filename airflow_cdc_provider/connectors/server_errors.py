"""Errors of a source server."""

from __future__ import annotations

from airflow_cdc_provider.core.connections.error_classes import ErrorClass, Meaning
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, SourceUnavailable, SourceUnreachable


def login_rejected(where: str, found: str, connection_id: str) -> CheckFailed:
    do = correct_connection(connection_id)
    return CheckFailed.of("CON009", "the server rejects the login", where, found, do=do)


def correct_connection(connection_id: str) -> str:
    return f"correct login, password or database of the Airflow connection {connection_id or 'of the source'}"


def unreachable(where: str, found: str) -> SourceUnreachable:
    do = "check host, port and network"
    return SourceUnreachable.of("CON010", "the server cannot be reached", where, found, do=do)


def server_failed(where: str, found: str, meaning: Meaning) -> CdcError:
    """``found``: the server's own code and words."""
    do = meaning.do
    match meaning.kind:
        case ErrorClass.PERMISSION:
            return missing_privilege(where, found)
        case ErrorClass.PERMANENT:
            what = "the server refuses a statement, and will refuse it each time"
            return CheckFailed.of("CON015", what, where, found, do=do)
        case ErrorClass.LIMIT:
            return SourceUnavailable.of("CON016", "a limit of the server stands in the way", where, found, do=do)
        case ErrorClass.RETRY:
            return SourceUnavailable.of("CON013", "the server returned an error", where, found, do=do)
        case ErrorClass.UNKNOWN:
            return SourceUnavailable.of("CON017", "the server returned an unknown error", where, found, do=do)


def missing_privilege(where: str, found: str, do: str = "run `airflow cdc check`: it shows the GRANT") -> CheckFailed:
    return CheckFailed.of("SRC010", "a privilege is missing", where, found, do=do)
