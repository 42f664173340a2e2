"""The connection types of the provider, as Airflow shows and tests them."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager
from airflow.sdk import Connection as WorkerConnection
from airflow.sdk.log import redact
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from fastapi.testclient import TestClient

from airflow_cdc_provider.connectors.sources.salesforce.access import ALLOWED as SALESFORCE
from airflow_cdc_provider.connectors.transports.kafka.client_settings import ALLOWED as KAFKA
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.storage.azure import EXTRA as AZURE
from airflow_cdc_provider.core.storage.gcs import OPTIONS as CLOUD_STORAGE
from airflow_cdc_provider.core.storage.locations import ABFSS, GS
from airflow_cdc_provider.core.storage.s3 import EXTRA as S3
from airflow_cdc_provider.get_provider_info import CONNECTION_TYPES
from airflow_cdc_provider.hooks.connections import TEST_WITH, connection_info
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.salesforce.org import SalesforceOrg
from airflow_cdc_provider.targets.iceberg.store_properties import REST_PROPERTIES
from tests.buckets import RunningStores
from tests.rest_catalog import Warehouse, rest_catalog

# Airflow's own route asks its manager, which then warns of itself.
pytestmark = pytest.mark.filterwarnings("ignore:ProvidersManager.hooks is deprecated")

READ = {
    "cdc_salesforce": SALESFORCE,
    "cdc_kafka": KAFKA,
    "cdc_iceberg": REST_PROPERTIES,
    "cdc_s3": S3,
    "cdc_gcs": CLOUD_STORAGE,
    "cdc_azure": AZURE,
}
BAD = "b4d-s3cret-value"


def forms() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Type, name and definition of every field."""
    for one in CONNECTION_TYPES:
        for name, field in one["conn-fields"].items():
            yield one["connection-type"], name, field


def test_airflow_shows_every_type_with_its_fields_and_can_test_it() -> None:
    manager = ProvidersManager()
    hooks = {kind: manager.hooks[kind] for kind in READ}
    assert all(hook is not None and hook.connection_testable for hook in hooks.values())
    widgets = manager.connection_form_widgets
    assert {f"extra__{kind}__{name}" for kind, name, _ in forms()} <= set(widgets)
    assert widgets["extra__cdc_salesforce__consumer_secret"].is_sensitive
    assert manager.field_behaviours["cdc_iceberg"]["relabeling"]["host"] == "URL of the catalog"
    assert "port" in manager.field_behaviours["cdc_kafka"]["hidden_fields"]


def test_the_titles_of_the_forms_are_those_of_the_hooks() -> None:
    hooks = ProvidersManager().hooks
    for one in CONNECTION_TYPES:
        hook = hooks[one["connection-type"]]
        assert hook is not None and hook.hook_name == one["hook-name"]


def test_a_form_has_only_fields_that_are_read() -> None:
    assert [(kind, name) for kind, name, _ in forms() if name not in READ[kind] | {TEST_WITH}] == []


def test_airflow_masks_every_secret_field_of_a_form() -> None:
    secret = [name for _, name, field in forms() if field["schema"].get("format") == "password"]
    assert len(secret) > 8
    assert [name for name in secret if redact({name: BAD}) != {name: "***"}] == []


def test_the_forms_are_known_without_a_library_of_a_system() -> None:
    program = (
        "import sys; from airflow.providers_manager import ProvidersManager as M; M().hooks['cdc_kafka']; "
        "print(sorted({'confluent_kafka', 'pyiceberg', 'obstore', 'grpc', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_settings_of_a_test_are_no_part_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "cdc_s3", "extra": {"region_name": "eu-west-1", TEST_WITH: {"location": "s3://b/p"}}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    assert connection_info("lake").extra == {"region_name": "eu-west-1"}


@pytest.fixture(scope="module")
def api(metadata_database: None) -> TestClient:
    """Airflow's own API, as an administrator."""
    token = init_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="ADMIN"))
    return TestClient(create_app(apps="core"), headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def attempt(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Test a form, as its button does: whether the system can be used, and the message."""
    monkeypatch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")

    def test(kind: str, extra: Mapping[str, Any] | None = None, **fields: Any) -> tuple[bool, str]:
        body = {"connection_id": f"c{uuid.uuid4().hex}", "conn_type": kind, "extra": json.dumps(extra or {}), **fields}
        response = api.post("/api/v2/connections/test", json=body)
        assert response.status_code == 200, response.text
        return response.json()["status"], response.json()["message"]

    return test


def refused(result: tuple[bool, str], *texts: str) -> None:
    usable, message = result
    assert not usable and BAD not in message
    assert [text for text in texts if text not in message] == [], message


def test_the_form_of_the_api_has_the_fields(api: TestClient) -> None:
    kinds = {one["connection_type"]: one for one in api.get("/ui/connections/hook_meta").json()}
    assert set(kinds["cdc_kafka"]["extra_fields"]) == {name for kind, name, _ in forms() if kind == "cdc_kafka"}
    assert kinds["cdc_s3"]["standard_fields"]["login"]["title"] == "Access key"
    assert kinds["cdc_s3"]["standard_fields"]["host"]["hidden"]


@pytest.mark.server
def test_salesforce_is_tested_over_rest_and_pubsub(attempt: Any) -> None:
    with SalesforceOrg() as org:
        app = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
        local = {"pubsub_endpoint": org.pubsub_endpoint, "pubsub_tls": False}
        assert attempt("cdc_salesforce", {**app, TEST_WITH: local})[0]
        refused(attempt("cdc_salesforce", {**app, "consumer_secret": BAD, TEST_WITH: local}), "CON009", "under test")
        unknown = {**local, "channel": "/data/None__chn"}
        refused(attempt("cdc_salesforce", {**app, TEST_WITH: unknown}), "SRC", "/data/None__chn")
        refused(
            attempt("cdc_salesforce", {**app, TEST_WITH: {"login_url": "https://a.example"}}), "CON005", "login_url"
        )
        refused(attempt("cdc_salesforce", {"consumer_key": "k"}), "CON012")


@pytest.mark.jvm
@pytest.mark.server
def test_kafka_is_tested_with_its_login_and_its_topics(attempt: Any) -> None:
    with EmbeddedKafka() as broker:
        client = {name: value for name, value in broker.client.items() if not name.startswith("sasl.pass")}
        login = {"login": broker.client["sasl.username"], "password": broker.password}
        assert attempt("cdc_kafka", client, **login)[0]
        refused(attempt("cdc_kafka", {**client, TEST_WITH: {"topics": ["shop.*"]}}, **login), "SRC083", "shop.*")
        refused(attempt("cdc_kafka", client, **{**login, "password": BAD}), "SRC081", "uthentication")
        refused(attempt("cdc_kafka", {**client, "plugin.library.paths": "/x.so"}, **login), "CON030")


@pytest.mark.server
def test_a_catalog_is_tested_with_its_login_and_the_store_of_its_tables(attempt: Any, tmp_path: Path) -> None:
    with rest_catalog(tmp_path, "s3cret", Warehouse(str(tmp_path))) as url:
        good = {"host": url, "login": "cdc", "password": "s3cret"}
        assert attempt("cdc_iceberg", {"s3.region": ""}, **good)[0]
        refused(attempt("cdc_iceberg", {TEST_WITH: {"storage": "s3"}}, **good), "TGT006", "storage: folder")
        refused(attempt("cdc_iceberg", **{**good, "password": BAD}), "TGT010")
    refused(attempt("cdc_iceberg", **good), "TGT010")
    refused(attempt("cdc_iceberg", password=BAD), "TGT001", "URL")


@pytest.mark.server
def test_a_bucket_is_tested_at_a_location(attempt: Any, object_stores: RunningStores) -> None:
    store = object_stores["s3"]
    good = {"login": store.connection.login, "password": store.connection.password}
    address, place = dict(store.connection.extra), {TEST_WITH: {"location": store.url("forms")}}
    assert attempt("cdc_s3", {**address, **place}, **good)[0]
    assert store.keys("forms") == []
    nowhere = {TEST_WITH: json.dumps({"location": store.url("forms", bucket="missing")})}
    refused(attempt("cdc_s3", {**address, **nowhere}, **good), "STG010", "missing")
    refused(attempt("cdc_s3", address, **good), "CON005", "s3://bucket/path")
    refused(attempt("cdc_s3", {**address, **place}, login="half"), "CON020")
    refused(attempt("cdc_gcs", {**place, "keyfile_dict": json.dumps({"private_key": BAD})}), "CON005", "gs://")
    refused(attempt("cdc_azure", {TEST_WITH: "{"}), "CON005", "not JSON")
    signed = f"abfss://lake@acme.dfs.core.windows.net/p?sig={BAD}"
    refused(attempt("cdc_azure", {TEST_WITH: {"location": signed}}), "CON005", "abfss://container@")


@pytest.mark.server
@pytest.mark.parametrize(("form", "kind"), [("cdc_gcs", GS), ("cdc_azure", ABFSS)])
def test_a_bucket_of_another_cloud_is_tested_with_its_key(
    attempt: Any, object_stores: RunningStores, form: str, kind: str
) -> None:
    store = object_stores[kind]
    good = {name: getattr(store.connection, name) for name in ("host", "login", "password")}
    extra, place = dict(store.connection.extra), {TEST_WITH: {"location": store.url("forms")}}
    assert attempt(form, {**extra, **place}, **good)[0]
    assert store.keys("forms") == []
    nowhere = {TEST_WITH: {"location": store.url("forms", bucket="missing")}}
    refused(attempt(form, {**extra, **nowhere}, **good), "STG010", "missing")
    wrong = with_another_key(store.connection)
    refused(attempt(form, {**wrong.extra, **place}, **{**good, "password": wrong.password}), "STG010")


def with_another_key(connection: ConnectionInfo) -> ConnectionInfo:
    """Of the right form: an account's key, or that of a service account."""
    if "keyfile_dict" not in connection.extra:
        return replace(connection, password=b64encode(BAD.encode()).decode())
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = json.loads(connection.extra["keyfile_dict"])
    return replace(connection, extra={**connection.extra, "keyfile_dict": json.dumps({**account, "private_key": text})})


def test_a_worker_tests_a_connection_that_only_it_has() -> None:
    """Airflow can queue a test for a worker. The connection is then in no database."""
    queued = WorkerConnection(conn_id="queued", conn_type="cdc_kafka", extra='{"security.protocol": "SSL"}')
    refused(queued.test_connection(), "CON030", "no servers")


def test_an_unexpected_error_does_not_show_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError(f"password={BAD}")

    monkeypatch.setattr("airflow_cdc_provider.hooks.connection_types.open_store", fail)
    fields = {"conn_type": "cdc_s3", "extra": {TEST_WITH: {"location": "s3://lake/p"}}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    refused(Connection.get_connection_from_secrets("lake").test_connection(), "RuntimeError")
