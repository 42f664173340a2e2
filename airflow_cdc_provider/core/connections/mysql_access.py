"""TLS options of a connection to a MySQL or MariaDB server, read the same way for source, target, polled tables and
Spark."""

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

TLS = "ssl"
ALLOWED = frozenset({TLS, VERIFY})
"""No options of the driver: ``read_default_file`` reads files, ``local_infile`` sends them to the server,
``init_command`` runs statements, ``unix_socket`` connects to another server."""
AIRFLOWS_OWN = frozenset({"charset", "client", "cursor"})
FILES = ("ca", "cert", "key")


@dataclass(frozen=True)
class MysqlTls:
    """``authority``: file of the certificate authority; empty for those of the host. ``cert`` and ``key``: files of the
    client certificate."""

    connection: ConnectionInfo
    authority: str = ""
    cert: str = ""
    key: str = ""
    verified: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises CheckFailed (CON040) if a file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.authority or None)
            # Certificates that a server generates for itself lack extensions that the strict mode requires.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not self.verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except OSError as error:
            found = f"unusable files in `{TLS}`: {error.strerror or type(error).__name__}"
            raise option_not_allowed(
                self.connection, found, "files in PEM form that exist on every host that runs jobs"
            ) from None
        return context

    def jdbc(self) -> str:
        """The same as URL parameters of MariaDB's JDBC driver. Its format for keys differs, so they are omitted."""
        if not self.verified:
            return "sslMode=trust"
        authority = self.authority or host_authorities()
        return "sslMode=verify-full" + (f"&serverSslCert={authority}" if authority else "")


def mysql_tls(connection: ConnectionInfo) -> MysqlTls | None:
    """None if the connection does not enable TLS. Raises CheckFailed (CON040) if the extra contains an option or value
    that is not allowed."""
    options = allowed_options(connection, ALLOWED, AIRFLOWS_OWN)
    setting = options.get(TLS, False)
    if not isinstance(setting, bool | dict):
        raise option_not_allowed(
            connection, f"{TLS} that is neither true nor an object", f'"{TLS}": true, {{"ca": "/ca.pem"}}'
        )
    files = dict(setting) if isinstance(setting, dict) else {}
    if unknown := sorted(files.keys() - set(FILES)):
        raise option_not_allowed(connection, f"{', '.join(unknown)} in {TLS}", f"{', '.join(FILES)} in {TLS}")
    verify = boolean_option(connection, VERIFY, options[VERIFY]) if VERIFY in options else True
    if not verify and (setting is False or files.get("ca")):
        found = f"{VERIFY}: false, together with a certificate authority or without TLS"
        raise option_not_allowed(connection, found, f"{VERIFY}: false with {TLS}: true")
    if setting is False:
        return None
    paths = {name: file_path_option(connection, f"{TLS}.{name}", path) for name, path in files.items() if path}
    if "key" in paths and "cert" not in paths:
        raise option_not_allowed(
            connection, f"{TLS}.key without {TLS}.cert", f"both, or {TLS}.cert with the key in its file"
        )
    return MysqlTls(connection, paths.get("ca", ""), paths.get("cert", ""), paths.get("key", ""), verify)


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    tls = mysql_tls(connection)
    if tls is None or tls.verified:
        return []
    do = f'remove `{VERIFY}`, and name the server\'s certificate authority in `{TLS}: {{"ca": …}}`'
    return [not_verified(connection.connection_id, f"{VERIFY}: false", do)]
