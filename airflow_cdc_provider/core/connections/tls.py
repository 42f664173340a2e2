"""TLS: what a connection asks for is verified, by the authorities it names, else by those of the host."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.errors import CheckFailed, Problem

VERIFY = "tls_verify"
"""The key of an extra that turns it off."""

UNTRUSTED = re.compile(
    r"certificate[ _]verify[ _]failed|root certificate file|certificate for .* does not match", re.IGNORECASE
)
"""How libraries say that they do not know whom they talk to."""

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine
)


@runtime_checkable
class ReachesUnverified(Protocol):
    """A source or target that a connection may lead to without TLS being verified."""

    def unverified(self) -> list[Problem]:
        """What the connection turns off. No obstacle: for `check` to say aloud. Asks nobody."""


def host_authorities() -> str:
    """The file of the authorities that this host trusts. Libraries out of wheels bring an OpenSSL of their own, which
    looks for them where nothing is. Empty where the host has no such file."""
    told = ssl.get_default_verify_paths().cafile
    return next((path for path in (told, *AUTHORITIES) if path and Path(path).is_file()), "")


def not_verified(connection_id: str, found: str, do: str) -> Problem:
    return Problem(
        "CON041",
        "TLS is not verified: the login may be told to somebody else than the server",
        where=f"extra of connection {connection_id}",
        found=found,
        do=do,
    )


def untrusted(place: str, connection_id: str, found: str, authority: str) -> CheckFailed:
    """``authority``: how the extra names the file of an authority."""
    return CheckFailed(
        Problem(
            "CON042",
            "the server's certificate is not trusted",
            where=place,
            found=found,
            allowed="a certificate for this host by an authority that the connection names, or that this host trusts",
            do=f"add {authority} to the extra of connection {connection_id}, on every host that runs jobs; or turn the"
            f" check off by `{VERIFY}: false`",
        )
    )
