"""A broker behind TLS and a login, as in production."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.certificates import certificate
from tests.connectors.kafka_topics import Topics, messages

pytestmark = [pytest.mark.jvm, pytest.mark.server]
LISTENER = "listener.name.client.ssl.keystore"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Client settings with a login. Without ``ssl.ca.location`` the broker is not trusted."""
    certificates, key = certificate()
    settings = {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"{LISTENER}.type": "PEM",
        f"{LISTENER}.certificate.chain": certificates.replace("\n", "\\n"),
        f"{LISTENER}.key": key.replace("\n", "\\n"),
    }
    file: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    file.write_text(certificates)
    with EmbeddedKafka(settings) as broker:
        yield {**broker.client, "security.protocol": "SASL_SSL", "ssl.ca.location": str(file)}


def of(client: dict[str, str]) -> Topics:
    broker: Any = SimpleNamespace(client=client)
    return Topics(broker, "tls")


def test_topics_behind_tls_are_read_by_a_client_that_trusts_the_broker(client: dict[str, str]) -> None:
    topics = of(client)
    sent = messages()
    topics.send(topics.make("d.t"), sent)
    items, _ = topics.window({}, topics.tasks())
    records = [one for one in items if isinstance(one, ChangeRecord)]
    assert len(records) == sum(one.value is not None for one in sent)
    assert topics.source().check(topics.tasks()) == []

    without_authority = {name: text for name, text in client.items() if name != "ssl.ca.location"}
    with pytest.raises(SourceUnavailable, match=r"SRC081.*certificate verify failed") as caught:
        of(without_authority).source().tables()
    assert client["sasl.password"] not in str(caught.value)
