"""Certificates of servers under test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_cdc_provider.sandbox.server import HOST, RunAs


def certificate(subject: str = "tests") -> tuple[str, str]:
    """A self-signed certificate and its key, PEM. It is for the address, and for a host of the subject's name."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST)), x509.DNSName(subject)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    key_pem = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return made.public_bytes(encoding).decode(), key_pem.decode()


@contextmanager
def certificate_files(reader: RunAs) -> Iterator[tuple[Path, Path]]:
    """Certificate and key as files that the user of the server may read; the key is readable for that user alone."""
    with TemporaryDirectory(prefix="cdc-tls-") as folder:
        files = Path(folder, "server.pem"), Path(folder, "server.key")
        Path(folder).chmod(0o755)
        for file, text in zip(files, certificate(), strict=True):
            file.touch(0o600)
            file.write_text(text)
        files[0].chmod(0o644)
        if "user" in reader:
            os.chown(files[1], reader["user"], reader["group"])
        yield files
