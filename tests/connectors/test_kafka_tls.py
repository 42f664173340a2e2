"""A broker behind TLS and a login, as they are run outside of a laboratory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.server import HOST
from tests.connectors.kafka_topics import Topics, messages

pytestmark = [pytest.mark.jvm, pytest.mark.server]
LISTENER = "listener.name.client.ssl.keystore"


def certificate() -> tuple[str, str]:
    """One that vouches for itself, and its key; PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    told = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return made.public_bytes(encoding).decode(), told.decode()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings that let one in. Whoever leaves ``ssl.ca.location`` out does not know the broker."""
    ours, key = certificate()
    settings = {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"{LISTENER}.type": "PEM",
        f"{LISTENER}.certificate.chain": ours.replace("\n", "\\n"),
        f"{LISTENER}.key": key.replace("\n", "\\n"),
    }
    file: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    file.write_text(ours)
    with EmbeddedKafka(settings) as broker:
        yield {**broker.client, "security.protocol": "SASL_SSL", "ssl.ca.location": str(file)}


def of(client: dict[str, str]) -> Topics:
    broker: Any = SimpleNamespace(client=client)
    return Topics(broker, "tls")


def test_topics_behind_tls_are_read_by_who_knows_the_broker(client: dict[str, str]) -> None:
    topics = of(client)
    sent = messages()
    topics.send(topics.make("d.t"), sent)
    items, _ = topics.window({}, topics.tasks())
    records = [one for one in items if isinstance(one, ChangeRecord)]
    assert len(records) == sum(one.value is not None for one in sent)
    assert topics.source().check(topics.tasks()) == []

    stranger = {name: text for name, text in client.items() if name != "ssl.ca.location"}
    with pytest.raises(SourceUnavailable, match=r"SRC081.*certificate verify failed") as caught:
        of(stranger).source().tables()
    assert client["sasl.password"] not in str(caught.value)
