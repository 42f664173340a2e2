"""Which properties of a REST catalog's connection reach Iceberg's two libraries, and under which names.

Both read the properties of the catalog, and then those that the catalog's answer contains for a table, among them
temporary credentials. Their names for stores are not all the same; those of the connection are pyiceberg's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options, option_not_allowed
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import is_loopback, not_verified
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.storage.s3 import DEFAULT_REGION

ENDPOINT, PATH_STYLE, REGIONS = "s3.endpoint", "s3.path-style-access", ("s3.region", "client.region")
KEY_ID, SECRET_KEY = "s3.access-key-id", "s3.secret-access-key"
GCS_HOST, GCS_TOKEN, GCS_EXPIRY = "gcs.service.host", "gcs.oauth2.token", "gcs.oauth2.token-expires-at"
ACCOUNT, ACCOUNT_KEY, SAS = "adls.account-name", "adls.account-key", "adls.sas-token"
DELEGATION = "header.X-Iceberg-Access-Delegation"
VENDED = "vended-credentials"

REST_PROPERTIES = frozenset(
    {
        ACCOUNT,
        ACCOUNT_KEY,
        SAS,
        "audience",
        "credential",
        GCS_EXPIRY,
        GCS_HOST,
        "gcs.project-id",
        GCS_TOKEN,
        DELEGATION,
        "oauth2-server-uri",
        "prefix",
        "resource",
        "rest.signing-name",
        "rest.signing-region",
        "rest.sigv4-enabled",
        KEY_ID,
        ENDPOINT,
        PATH_STYLE,
        *REGIONS,
        SECRET_KEY,
        "s3.session-token",
        "scope",
        "token",
        "warehouse",
    }
)
"""Properties of a REST catalog that a connection's extra may pass to both libraries. Excluded: those that name a class
(``py-io-impl``, ``io-impl``, ``client.credentials-provider``, ``auth`` …), those that only one of them has (remote
signing, applications of Entra ID), and those that this package sets."""

PAIRS = (
    (KEY_ID, SECRET_KEY),
    (SECRET_KEY, KEY_ID),
    (GCS_TOKEN, GCS_EXPIRY),
    (ACCOUNT_KEY, ACCOUNT),
    (SAS, ACCOUNT),
)
"""Properties that need another one."""

S3_CLIENTS = "org.apache.iceberg.aws.s3.DefaultS3FileIOAwsClientFactory"
"""Creates clients of S3 only. Iceberg's default also has clients of other services of AWS, whose libraries the jobs
lack."""


def rest_properties(connection: ConnectionInfo) -> dict[str, str]:
    """Raises CheckFailed (CON040)."""
    given = {name: _text(value) for name, value in allowed_options(connection, REST_PROPERTIES).items()}
    for name, other in PAIRS:
        if name in given and other not in given:
            raise option_not_allowed(connection, f"{name} without {other}", f"both {name} and {other}")
    return {DELEGATION: VENDED, **given}


def python_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """For pyiceberg. With an endpoint, pyarrow's default is the bucket in the path."""
    virtual = {"s3.force-virtual-addressing": "true"} if properties.get(PATH_STYLE) == "false" else {}
    return {**properties, **virtual}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """For Iceberg in Spark."""
    names = dict(properties)
    region = next((properties[name] for name in REGIONS if name in properties), "")
    if ENDPOINT in properties:
        names.setdefault(PATH_STYLE, "true")
        region = region or DEFAULT_REGION
    if region:
        names["client.region"] = region
    return {**names, **_azure(properties), "s3.client-factory-impl": S3_CLIENTS}


def _azure(properties: Mapping[str, str]) -> dict[str, str]:
    account = properties.get(ACCOUNT, "")
    if key := properties.get(ACCOUNT_KEY):
        return {"adls.auth.shared-key.account.name": account, "adls.auth.shared-key.account.key": key}
    if token := properties.get(SAS):
        return {f"{SAS}.{account}.{endpoint}.core.windows.net": token for endpoint in ("dfs", "blob")}
    return {}


def lacks_region(location: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """``properties``: of the catalog and of its answer for a table. pyarrow asks AWS for the region of a bucket;
    Iceberg in Spark does not."""
    known = (*(properties.get(name) for name in (*REGIONS, ENDPOINT)), environment.get("AWS_REGION"))
    return location.startswith("s3") and not any(known)


def http_warnings(uri: str, connection: ConnectionInfo) -> list[Problem]:
    """A catalog or store on another host that is used without TLS. Raises CheckFailed (CON040)."""
    properties = rest_properties(connection)
    addresses = {"host": uri, **{name: properties.get(name, "") for name in (ENDPOINT, GCS_HOST)}}
    return [
        not_verified(connection.connection_id, f"{name}: http", f"write `https://` in {name}")
        for name, address in addresses.items()
        if address.startswith("http://") and not is_loopback(address)
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
