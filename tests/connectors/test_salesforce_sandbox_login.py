"""Every login flow, and the calls that only timestamp windows need, against the sandbox org."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.oauth import App

pytestmark = pytest.mark.server


@pytest.fixture
def sandbox() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        yield org


def org(sandbox: SalesforceOrg, login: str = "", **extra: Any) -> Org:
    info = ConnectionInfo("crm", login=login, extra={"instance_url": sandbox.instance_url, **extra})
    return Org(info, SalesforceOptions(pubsub_endpoint=sandbox.pubsub_endpoint, pubsub_tls=False), "crm")


def test_a_jwt_of_the_right_key_is_accepted_and_one_of_another_key_is_not(sandbox: SalesforceOrg) -> None:
    pems = []
    for key in (rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)):
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pems.append(key.private_bytes(serialization.Encoding.PEM, form, plain).decode())
    public = serialization.load_pem_private_key(pems[0].encode(), None).public_key()
    encoding, shape = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    user = sandbox.integration.username
    sandbox.tokens.apps["jwt"] = App("jwt", "", user, public_key=public.public_bytes(encoding, shape).decode())
    right, wrong = (org(sandbox, login=user, consumer_key="jwt", private_key=pem) for pem in pems)
    assert right.http.token().org_id == sandbox.org_id
    with pytest.raises(CheckFailed, match="CON009"):
        wrong.http.token()


def test_case_34_each_rotated_refresh_token_is_valid_once_and_the_next_one_is_stored(
    sandbox: SalesforceOrg, tmp_path: Path
) -> None:
    user = sandbox.integration.username
    sandbox.tokens.apps["web"] = App("web", "s3cret", user, rotates=True)
    first = sandbox.tokens.grant_refresh("web", user)
    app = {"consumer_key": "web", "consumer_secret": "s3cret", "refresh_token": first}
    one = org(sandbox, **app, refresh_token_file=str(tmp_path / "token"))
    one.rest.limits()
    sandbox.tokens.expire()
    one.rest.limits()
    with pytest.raises(CheckFailed, match="CON009"):
        org(sandbox, **app).http.token()
    again = org(sandbox, **app, refresh_token_file=str(tmp_path / "token"))
    assert again.http.token().org_id == one.http.token().org_id


def test_the_deletes_of_an_interval_are_listed_by_the_clock_of_the_server(sandbox: SalesforceOrg) -> None:
    ids = sandbox.load("Account", [{"Name": f"A{n}"} for n in range(3)])
    sandbox.clock.advance(600)
    with sandbox.transaction() as tx:
        tx.update("Account", ids[0], {"Phone": "1"})
        tx.delete("Account", ids[1])
    sandbox.clock.advance(600)
    crm = org(sandbox, consumer_key=sandbox.client_id, consumer_secret=sandbox.client_secret)
    now = crm.rest.now()
    start = now - timedelta(seconds=900)
    assert crm.rest.deleted("Account", start, now) == (ids[1],)
