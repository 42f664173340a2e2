"""TLS options of a connection to a SQL Server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import VERIFY, host_authorities, not_verified
from airflow_cdc_provider.core.errors import Problem

TLS, AUTHORITY = "tls", "tls_ca"
ALLOWED = frozenset({TLS, AUTHORITY, VERIFY})


@dataclass(frozen=True)
class SqlServerTls:
    """``authority``: file of the certificate authority; empty for those of the host."""

    connection: ConnectionInfo
    enabled: bool
    authority: str
    verified: bool

    def context(self) -> ssl.SSLContext:
        """Raises CheckFailed (CON040) if the file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.authority or host_authorities() or None)
        except OSError as error:
            found = f"an unusable file in `{AUTHORITY}`: {error.strerror or type(error).__name__}"
            raise option_not_allowed(
                self.connection, found, "a file in PEM form that exists on every host that runs jobs"
            ) from None
        # Certificates that a server generates for itself lack extensions that the strict mode requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # TDS 7 has no later one
        if not self.verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def warnings(self) -> list[Problem]:
        if self.enabled and self.verified:
            return []
        found = f"{VERIFY}: false" if self.enabled else f"{TLS}: false"
        do = f"remove `{found.partition(':')[0]}`, and name the server's certificate authority in `{AUTHORITY}`"
        return [not_verified(self.connection.connection_id, found, do)]


def sqlserver_tls(connection: ConnectionInfo) -> SqlServerTls:
    """TLS is on by default. Raises CheckFailed (CON040) if the extra contains an option or value that is not
    allowed."""
    options = allowed_options(connection, ALLOWED)
    enabled = boolean_option(connection, TLS, options[TLS]) if TLS in options else True
    verified = boolean_option(connection, VERIFY, options[VERIFY]) if VERIFY in options else True
    authority = file_path_option(connection, AUTHORITY, options[AUTHORITY]) if AUTHORITY in options else ""
    if authority and not (enabled and verified):
        found = f"{AUTHORITY}, together with {TLS}: false or {VERIFY}: false"
        raise option_not_allowed(connection, found, f"{AUTHORITY} alone")
    return SqlServerTls(connection, enabled, authority, verified)
