"""From the fields of an Airflow connection to a token, by each login flow."""

from __future__ import annotations

import json
import stat
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.connectors.sources.salesforce.access import Access, Flow, read_access
from airflow_cdc_provider.connectors.sources.salesforce.oauth import Login
from airflow_cdc_provider.connectors.sources.salesforce.options import Environment, SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, IdentityChanged, SourceUnavailable
from airflow_cdc_provider.core.serde import from_plain
from tests.connectors.salesforce_http import ORG, Answer, HttpServer, access

pytestmark = pytest.mark.server

MY_DOMAIN = "https://acme.my.salesforce.com"
TOKEN = "/services/oauth2/token"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def pem(key: rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


def login(granted: Access) -> Login:
    session = requests.Session()
    session.trust_env = False
    return Login(granted, session)


def given(login: str = "", password: str = "", host: str = "", **extra: Any) -> ConnectionInfo:
    return ConnectionInfo("crm", host=host, login=login, password=password, extra=extra)


def granted(info: ConnectionInfo, **options: Any) -> Access:
    return read_access(info, SalesforceOptions(**options))


CLIENT = {"consumer_key": "k", "consumer_secret": "s", "instance_url": MY_DOMAIN}


def test_the_fields_of_airflows_own_provider_select_the_login_flow(pem: str) -> None:
    assert granted(given(**CLIENT)).flow is Flow.CLIENT_CREDENTIALS
    assert granted(given("ada@acme.com", consumer_key="k", private_key=pem)).flow is Flow.JWT
    assert granted(given(consumer_key="k", refresh_token="r")).flow is Flow.REFRESH_TOKEN


def test_fields_with_the_older_prefix_are_read_too() -> None:
    older = {f"extra__salesforce__{name}": value for name, value in CLIENT.items()}
    assert granted(given(**older)) == granted(given(**CLIENT))


def test_a_private_key_may_be_a_file_or_a_text_with_escaped_newlines(pem: str, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(pem)
    by_file = granted(given("ada", consumer_key="k", private_key_file_path=str(tmp_path / "key.pem")))
    by_text = granted(given("ada", consumer_key="k", private_key=pem.replace("\n", "\\n")))
    assert by_file.private_key == by_text.private_key == pem
    with pytest.raises(CheckFailed, match=r"CON012.*FileNotFoundError"):
        granted(given("ada", consumer_key="k", private_key_file_path=str(tmp_path / "none")))


@pytest.mark.parametrize(
    ("info", "options", "url"),
    [
        (given(**CLIENT), {}, MY_DOMAIN),
        (given(**{**CLIENT, "instance_url": "acme.my.salesforce.com/"}), {}, MY_DOMAIN),
        (given(host="acme.my.salesforce.com", consumer_key="k", consumer_secret="s"), {}, MY_DOMAIN),
        (given(consumer_key="k", consumer_secret="s", domain="acme.my"), {}, MY_DOMAIN),
        (given(consumer_key="k", refresh_token="r"), {}, "https://login.salesforce.com"),
        (given(consumer_key="k", refresh_token="r", domain="test"), {}, "https://test.salesforce.com"),
        (
            given(consumer_key="k", refresh_token="r"),
            {"environment": Environment.SANDBOX},
            "https://test.salesforce.com",
        ),
        (given(**CLIENT), {"login_url": "http://127.0.0.1:8080/"}, "http://127.0.0.1:8080"),
    ],
)
def test_tokens_are_issued_at_the_url_of_yaml_or_connection(info: ConnectionInfo, options: Any, url: str) -> None:
    assert granted(info, **options).login_url == url


@pytest.mark.parametrize(
    ("extra", "options", "found"),
    [
        ({"instance_url": "http://acme.my.salesforce.com"}, {}, "http://acme.my.salesforce.com"),
        ({}, {"login_url": "http://login.salesforce.com"}, "http://login.salesforce.com"),
        ({"refresh_token_file": "tokens/../../root/.ssh/authorized_keys"}, {}, "refresh_token_file"),
        ({"private_key_file_path": "key.pem"}, {}, "private_key_file_path"),
        ({"session_class": "os.system"}, {}, "session_class"),
        ({"verify": False}, {}, "verify"),
    ],
)
def test_fields_that_a_connection_must_not_have_are_refused_by_name(extra: Any, options: Any, found: str) -> None:
    with pytest.raises(CheckFailed, match=r"CON040 .*extra of connection crm") as caught:
        granted(given(**{**CLIENT, **extra}), **options)
    assert found in caught.value.problems[0].found


def test_the_token_is_sent_to_no_other_host_without_tls() -> None:
    def pubsub(endpoint: str) -> object:
        return Org(given(**CLIENT), SalesforceOptions(pubsub_endpoint=endpoint, pubsub_tls=False), "crm").pubsub

    assert pubsub("127.0.0.1:7443")
    with pytest.raises(CheckFailed, match=r"SRC033 .*api\.pubsub\.salesforce\.com:7443"):
        pubsub("api.pubsub.salesforce.com:7443")


@pytest.mark.parametrize(
    "info",
    [given("ada", "pass", security_token="t"), given(consumer_key="k"), given(consumer_secret="s"), given()],
)
def test_a_connection_without_a_login_flow_is_reported_and_its_password_never_used(
    info: ConnectionInfo,
) -> None:
    with pytest.raises(CheckFailed, match="CON012") as raised:
        granted(info)
    assert "pass" not in str(raised.value).replace("password", "")


def test_client_credentials_need_the_url_of_the_org() -> None:
    with pytest.raises(CheckFailed, match=r"CON012.*My Domain"):
        granted(given(consumer_key="k", consumer_secret="s", domain="login"))


def test_no_secret_is_in_printed_objects(pem: str) -> None:
    one = granted(given("ada", consumer_key="k", consumer_secret="s3cret", private_key=pem, refresh_token="r3fresh"))
    for secret in ("s3cret", "r3fresh", "PRIVATE KEY"):
        assert secret not in repr(one)


def test_the_yaml_contains_the_options_that_are_not_secret() -> None:
    options = from_plain(SalesforceOptions, {"channel": "/data/CRM__chn", "environment": "sandbox", "idle": 5})
    assert (options.channel, options.environment, options.idle.seconds) == ("/data/CRM__chn", Environment.SANDBOX, 5)
    assert options.api_version == "66.0" and options.pubsub_tls


def test_client_credentials_are_sent_as_basic_authorization(server: HttpServer) -> None:
    token = login(access(server)).token()
    (request,) = server.received
    assert request.form == {"grant_type": "client_credentials"}
    assert b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"key:s3cret"
    assert (token.access_token, token.instance_url, token.org_id) == ("token-1", server.url, ORG)
    assert "token-1" not in repr(token)


def test_a_jwt_is_signed_for_the_user_and_the_environment(server: HttpServer, key: rsa.RSAPrivateKey, pem: str) -> None:
    login(access(server, Flow.JWT, username="ada@acme.com", private_key=pem)).token()
    (request,) = server.received
    assert request.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    audience = "https://login.salesforce.com"
    claims = jwt.decode(request.form["assertion"], key.public_key(), algorithms=["RS256"], audience=audience)
    assert (claims["iss"], claims["sub"]) == ("key", "ada@acme.com")


def test_an_invalid_key_is_reported_without_the_key(server: HttpServer) -> None:
    with pytest.raises(CheckFailed, match=r"CON012.*RSA") as raised:
        login(access(server, Flow.JWT, username="ada", private_key="-----BEGIN NONSENSE")).token()
    assert "NONSENSE" not in str(raised.value)


def rotating(server: HttpServer, file: Path | str = "", token: str = "r0") -> Login:
    return login(access(server, Flow.REFRESH_TOKEN, refresh_token=token, refresh_token_file=str(file)))


def test_case_34_a_rotated_refresh_token_is_kept_and_used_by_the_next_login(server: HttpServer, tmp_path: Path) -> None:
    server.on("POST", TOKEN, *(Answer(server.token(f"t{n}", refresh_token=f"r{n}")) for n in (1, 2, 3)))
    file = tmp_path / "token"
    rotating(server, file).token()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rotating(server, file).token()
    assert server.received[0].form["client_secret"] == "s3cret"
    rotating(server, file, "authorised anew").token()
    assert [request.form["refresh_token"] for request in server.received] == ["r0", "r1", "authorised anew"]


def test_case_34_each_of_many_concurrent_logins_uses_the_token_of_the_one_before(
    server: HttpServer, tmp_path: Path
) -> None:
    server.on("POST", TOKEN, *(Answer(server.token(f"t{n}", refresh_token=f"r{n}")) for n in range(1, 9)))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: rotating(server, tmp_path / "token").token(), range(8)))
    assert [request.form["refresh_token"] for request in server.received] == [f"r{n}" for n in range(8)]


def test_case_34_a_rotated_refresh_token_that_cannot_be_stored_is_an_error(server: HttpServer, tmp_path: Path) -> None:
    server.on("POST", TOKEN, Answer(server.token("t1", refresh_token="r1")))
    with pytest.raises(CheckFailed, match=r"CON014.*rotation") as raised:
        rotating(server).token()
    assert "r1" not in str(raised.value).split()
    with pytest.raises(CheckFailed, match=r"CON014.*FileNotFoundError"):
        rotating(server, tmp_path / "absent" / "token").token()
    assert len(server.received) == 1, "without storage for its new token there is no login"
    (tmp_path / "token").write_text("{")
    with pytest.raises(CheckFailed, match=r"CON014.*remove it"):
        rotating(server, tmp_path / "token").token()


def test_a_refresh_token_that_does_not_rotate_is_not_stored(server: HttpServer) -> None:
    server.on("POST", TOKEN, Answer(server.token("t1", refresh_token="r0")))
    assert login(access(server, Flow.REFRESH_TOKEN, refresh_token="r0")).token().access_token == "t1"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (Answer({"error": "invalid_grant", "error_description": "user hasn't approved"}, 400), CheckFailed, "CON009"),
        (Answer({"error": "invalid_client_id"}, 400), CheckFailed, "CON009"),
        (Answer({"error": "unknown_error"}, 400), SourceUnavailable, "CON013"),
        (Answer(b"<html>", 503), SourceUnavailable, "CON013"),
        (Answer(None, 302, {"Location": "https://elsewhere"}), CheckFailed, "CON009"),
        (Answer({"access_token": "t", "id": "https://x/id/unknown"}), CheckFailed, "CON009"),
        (Answer(b"<html>", 200), CheckFailed, "CON009"),
    ],
)
def test_a_refused_login_and_a_failing_server_are_distinguished(
    server: HttpServer, answer: Answer, kind: type[CdcError], code: str
) -> None:
    server.on("POST", TOKEN, answer)
    with pytest.raises(kind, match=code) as raised:
        login(access(server)).token()
    assert "s3cret" not in str(raised.value)


def test_an_unreachable_login_server_can_be_retried() -> None:
    nowhere = Access("crm", Flow.CLIENT_CREDENTIALS, "http://127.0.0.1:1", "k", "a", consumer_secret="s")
    with pytest.raises(SourceUnavailable, match="CON010"):
        login(nowhere).token()


def test_case_27_a_login_to_another_org_is_refused(server: HttpServer) -> None:
    assert login(access(server, org_id=ORG[:15])).token().org_id == ORG
    with pytest.raises(IdentityChanged, match=f"SRC032.*{ORG}"):
        login(access(server, org_id="00D000000000002EAA")).token()


def test_an_answer_of_the_login_server_is_never_part_of_an_error(server: HttpServer) -> None:
    server.on("POST", TOKEN, Answer(json.loads('{"access_token": "s3cret-token", "id": ""}')))
    with pytest.raises(CheckFailed) as raised:
        login(access(server)).token()
    assert "s3cret-token" not in str(raised.value)
