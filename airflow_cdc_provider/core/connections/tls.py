"""TLS verification: by the certificate authority that the connection names, or else by those of the host."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.errors import CheckFailed, Problem

VERIFY = "tls_verify"
"""The key of an extra that turns verification off."""

UNTRUSTED = re.compile(
    r"certificate[ _]verify[ _]failed|root certificate file|certificate for .* does not match", re.IGNORECASE
)
"""The messages of libraries about an untrusted server certificate."""

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine
)

LOOPBACK_URL = re.compile(r"http://(?:127\.0\.0\.1|localhost)(?::\d+)?(?:/[^\s@?#]*)?")


@runtime_checkable
class WarnsAboutTls(Protocol):
    """A source or target whose connection may turn TLS verification off."""

    def tls_warnings(self) -> list[Problem]:
        """Warnings for ``check`` about verification that the connection turns off. Opens no connection."""


def host_authorities() -> str:
    """The file of the certificate authorities that this host trusts; empty if there is none. Libraries in wheels
    contain an OpenSSL whose default path does not exist on most hosts."""
    default = ssl.get_default_verify_paths().cafile
    return next((path for path in (default, *AUTHORITIES) if path and Path(path).is_file()), "")


def is_loopback(url: str) -> bool:
    """Whether requests to a URL without TLS stay on this host."""
    return LOOPBACK_URL.fullmatch(url) is not None


def not_verified(connection_id: str, found: str, do: str) -> Problem:
    return Problem(
        "CON041",
        "TLS is not verified: the login may be sent to an impostor of the server",
        where=f"extra of connection {connection_id}",
        found=found,
        do=do,
    )


def untrusted(where: str, connection_id: str, found: str, authority: str) -> CheckFailed:
    """``authority``: the option of the extra that names the file of a certificate authority."""
    return CheckFailed.of(
        "CON042",
        "the server's certificate is not trusted",
        where=where,
        found=found,
        allowed="a certificate for this host, issued by an authority that the connection names or this host trusts",
        do=f"add {authority} to the extra of connection {connection_id}, with the file on every host that runs"
        f" jobs; or turn verification off with `{VERIFY}: false`",
    )
