"""Errors of a source server."""

from __future__ import annotations

from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable


def login_rejected(where: str, found: str, connection_id: str) -> CheckFailed:
    do = correct_connection(connection_id)
    return CheckFailed.of("CON009", "the server rejects the login", where, found, do=do)


def correct_connection(connection_id: str) -> str:
    return f"correct login, password or database of the Airflow connection {connection_id or 'of the source'}"


def unreachable(where: str, found: str) -> SourceUnavailable:
    do = "check host, port and network"
    return SourceUnavailable.of("CON010", "the server cannot be reached", where, found, do=do)


def server_failed(where: str, found: str) -> SourceUnavailable:
    return SourceUnavailable.of("CON013", "the server returned an error", where, found, do="try again")


def missing_privilege(where: str, found: str, do: str = "run `airflow cdc check`: it shows the GRANT") -> CheckFailed:
    return CheckFailed.of("SRC010", "a privilege is missing", where, found, do=do)
