"""How a client of the sandbox org gets a token, and how long the token is valid."""

from __future__ import annotations

from collections.abc import Iterator

import jwt
import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from airflow_cdc_provider.sandbox.salesforce.oauth import App
from tests.connectors.salesforce_rest import Client, V, refusal

pytestmark = pytest.mark.server


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


@pytest.fixture
def client(org: SalesforceOrg) -> Iterator[Client]:
    with Client(org) as client:
        yield client


def token(org: SalesforceOrg, **form: str) -> requests.Response:
    return requests.post(f"{org.instance_url}/services/oauth2/token", data=form, timeout=60)


def test_client_credentials_give_a_token_of_the_run_as_user(org: SalesforceOrg) -> None:
    form = {"grant_type": "client_credentials", "client_id": org.client_id, "client_secret": org.client_secret}
    body = token(org, **form).json()
    assert body["instance_url"] == org.instance_url
    assert body["id"].endswith(f"/id/{org.org_id}/{org.integration.id}")
    assert body["access_token"].startswith(f"{org.org_id[:15]}!")
    assert "expires_in" not in body and "refresh_token" not in body
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    info = requests.get(f"{org.instance_url}/services/oauth2/userinfo", headers=headers, timeout=60).json()
    assert info["organization_id"] == org.org_id


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"client_id": "unknown"}, "invalid_client_id"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_a_wrong_grant_is_refused_in_the_form_of_oauth(org: SalesforceOrg, changed: dict[str, str], error: str) -> None:
    form = {"grant_type": "client_credentials", "client_id": org.client_id, "client_secret": org.client_secret}
    answer = token(org, **{**form, **changed})
    assert answer.status_code in (400, 401)
    assert answer.json()["error"] == error


def test_a_refresh_token_may_rotate_and_is_then_valid_once(org: SalesforceOrg) -> None:
    org.tokens.apps["app"] = App("app", "secret", "", rotates=True)
    first = org.tokens.grant_refresh("app", org.integration.username)
    form = {"grant_type": "refresh_token", "client_id": "app", "client_secret": "secret"}
    rotated = token(org, refresh_token=first, **form).json()["refresh_token"]
    assert token(org, refresh_token=first, **form).json()["error"] == "invalid_grant"
    assert token(org, refresh_token=rotated, **form).json()["access_token"]


def test_a_jwt_is_checked_by_signature_audience_and_the_clock_of_the_org(org: SalesforceOrg) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    org.tokens.apps["app"] = App("app", "", "", public_key=pem.decode())
    now = org.clock.now_ms() // 1000
    claims = {"iss": "app", "sub": org.integration.username, "aud": "https://login.salesforce.com", "exp": now + 180}

    def errors(signer: rsa.RSAPrivateKey, **changed: object) -> str | None:
        assertion = jwt.encode({**claims, **changed}, signer, algorithm="RS256")
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        error: str | None = token(org, grant_type=grant, assertion=assertion).json().get("error")
        return error

    assert errors(key) is None
    assert errors(other) == "invalid_grant"
    assert errors(key, aud=org.instance_url) == "invalid_grant"
    assert errors(key, exp=now - 10) == "invalid_grant"
    assert errors(key, sub="unknown@example.org") == "invalid_grant"
    assert errors(key, iss="unknown") == "invalid_client_id"


def test_a_fault_of_the_token_endpoint_has_the_form_of_oauth(org: SalesforceOrg) -> None:
    org.faults.http.append(HttpFault("", 503, "unavailable", "try later", retry_after=3))
    answer = token(org, grant_type="client_credentials")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")
    assert answer.json() == {"error": "unavailable", "error_description": "try later"}


def test_a_token_is_valid_for_two_hours_after_its_last_use(org: SalesforceOrg, client: Client) -> None:
    for _ in range(3):
        org.clock.advance(7000)
        assert client.get(f"{V}/limits").status_code == 200
    org.clock.advance(7300)
    assert refusal(client.get(f"{V}/limits")) == (401, "INVALID_SESSION_ID")
