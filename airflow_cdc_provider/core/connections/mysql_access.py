"""What a connection to a MySQL or MariaDB server says beside host and login: one reading for source, target, polled
tables and Spark."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from airflow_cdc_provider.core.connections.allowed_extras import file_path, flag, followed, refused
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import VERIFY, host_authorities, not_verified
from airflow_cdc_provider.core.errors import Problem

TLS = "ssl"
ALLOWED = frozenset({TLS, VERIFY})
"""No option of the driver: ``read_default_file`` reads files, ``local_infile`` sends them to the server,
``init_command`` runs statements, ``unix_socket`` leads elsewhere."""
AIRFLOWS_OWN = frozenset({"charset", "client", "cursor"})
FILES = ("ca", "cert", "key")


@dataclass(frozen=True)
class MysqlTls:
    """``authority`` is empty for those of the host. ``cert`` and ``key`` are of a login by certificate."""

    connection: ConnectionInfo
    authority: str = ""
    cert: str = ""
    key: str = ""
    verified: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises CheckFailed (CON040) where a file cannot be read."""
        try:
            made = ssl.create_default_context(cafile=self.authority or None)
            # Certificates that a server made for itself lack what strictness asks for.
            made.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not self.verified:
                made.check_hostname = False
                made.verify_mode = ssl.CERT_NONE
            if self.cert:
                made.load_cert_chain(self.cert, self.key or None)
        except OSError as error:
            found = f"files under `{TLS}` that cannot be used: {error.strerror or type(error).__name__}"
            raise refused(self.connection, found, "files in PEM form that exist on every host that runs jobs") from None
        return made

    def jdbc(self) -> str:
        """The same for MariaDB's driver, which decodes nothing. It has another format for keys."""
        if not self.verified:
            return "sslMode=trust"
        authority = self.authority or host_authorities()
        return "sslMode=verify-full" + (f"&serverSslCert={authority}" if authority else "")


def mysql_tls(connection: ConnectionInfo) -> MysqlTls | None:
    """None where the connection does not ask for TLS. Raises CheckFailed (CON040) where the extra says what is not
    allowed."""
    given = followed(connection, ALLOWED, AIRFLOWS_OWN)
    asked = given.get(TLS, False)
    if not isinstance(asked, bool | dict):
        raise refused(connection, f"{TLS} that is neither true nor an object", f'"{TLS}": true, {{"ca": "/ca.pem"}}')
    files = dict(asked) if isinstance(asked, dict) else {}
    if unknown := sorted(files.keys() - set(FILES)):
        raise refused(connection, f"{', '.join(unknown)} under {TLS}", f"{', '.join(FILES)} under {TLS}")
    verify = flag(connection, VERIFY, given[VERIFY]) if VERIFY in given else True
    if not verify and (asked is False or files.get("ca")):
        found = f"{VERIFY}: false, and what it would be verified by, or no TLS"
        raise refused(connection, found, f"{VERIFY}: false with {TLS}: true")
    if asked is False:
        return None
    paths = {name: file_path(connection, f"{TLS}.{name}", path) for name, path in files.items() if path}
    if "key" in paths and "cert" not in paths:
        raise refused(connection, f"{TLS}.key without {TLS}.cert", f"both, or {TLS}.cert with the key in its file")
    return MysqlTls(connection, paths.get("ca", ""), paths.get("cert", ""), paths.get("key", ""), verify)


def unverified(connection: ConnectionInfo) -> list[Problem]:
    tls = mysql_tls(connection)
    if tls is None or tls.verified:
        return []
    do = f'leave `{VERIFY}` out, and name the server\'s authority by `{TLS}: {{"ca": …}}`'
    return [not_verified(connection.connection_id, f"{VERIFY}: false", do)]
