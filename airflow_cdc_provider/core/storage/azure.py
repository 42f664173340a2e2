"""Access to Azure's object store, from an Airflow connection of type ``wasb`` or ``adls``."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import is_loopback
from airflow_cdc_provider.core.storage.access import RETRIES, refused
from airflow_cdc_provider.core.storage.locations import Location

TENANT, SAS, CLIENT, WORKLOAD_TENANT = (
    "tenant_id",
    "sas_token",
    "managed_identity_client_id",
    "workload_identity_tenant_id",
)
KEYS = ("shared_access_key", "account_key")
EXTRA = frozenset({TENANT, SAS, CLIENT, WORKLOAD_TENANT, *KEYS})

TOKEN_FILE = "AZURE_FEDERATED_TOKEN_FILE"
KEY_VARIABLES = frozenset({"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"})
SECRET_VARIABLES = frozenset({"AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"})

ABFS = "org.apache.hadoop.fs.azurebfs"
FLAT_NAMESPACE = {"fs.azure.account.hns.enabled": "false", "fs.azure.fns.account.service.type": "BLOB"}
"""Of accounts without hierarchical namespace, and of emulators: Hadoop must use their Blob endpoint."""
LOGIN = "https://login.microsoftonline.com"


@dataclass(frozen=True)
class AzureAccess:
    """``key``: of the account. ``sas``: a shared access signature without ``?``. ``secret``: of the service principal
    ``client`` in ``tenant``. None of them: workload identity or managed identity, of ``client`` if it is set.
    ``endpoint``: an emulator on this host, with the account in its path."""

    ignores_environment: ClassVar[bool] = True

    location: Location
    key: str = field(default="", repr=False)
    sas: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    client: str = ""
    tenant: str = ""
    endpoint: str = ""

    def store_arguments(self) -> dict[str, Any]:
        kinds = {"access_key": self.key, "sas_token": self.sas, "client_secret": self.secret}
        kind = next((name for name, value in kinds.items() if value), "auto")
        return {
            "container_name": self.location.bucket,
            "prefix": self.location.path or None,
            "config": {"azure_credential_type": kind, **self._library_options()},
            "client_options": {"allow_http": True} if self.endpoint else {},
            "retry_config": RETRIES,
        }

    def delta_options(self) -> dict[str, str]:
        return {**self._library_options(), **({"azure_allow_http": "true"} if self.endpoint else {})}

    def hadoop_settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        settings = self._credentials(environment)
        if self.endpoint or ".blob." in self.location.host:
            settings |= FLAT_NAMESPACE
        settings = {f"{name}.{self.location.host}": value for name, value in settings.items() if value}
        if self.endpoint:
            # Plain HTTP, under the scheme of the YAML.
            address = self.endpoint.removeprefix("http://").partition("/")[0]
            settings |= {"fs.abfss.impl": f"{ABFS}.AzureBlobFileSystem", "fs.azure.always.use.https": "false"}
            settings["fs.azure.abfs.endpoint"] = address
        return settings

    def overriding_variables(self) -> Set[str]:
        """In the library's order of precedence."""
        if self.key:
            return {"AZURE_STORAGE_TOKEN"}
        if self.secret:
            return {"AZURE_STORAGE_TOKEN", *KEY_VARIABLES, TOKEN_FILE}
        return {"AZURE_STORAGE_TOKEN", *KEY_VARIABLES, TOKEN_FILE, *SECRET_VARIABLES} if self.sas else set()

    def _library_options(self) -> dict[str, str]:
        account = self.location.account
        options = {
            "azure_storage_account_name": account,
            "azure_storage_account_key": self.key,
            "azure_storage_sas_key": self.sas,
            "azure_client_id": self.client,
            "azure_client_secret": self.secret,
            "azure_tenant_id": self.tenant,
            "azure_endpoint": self.endpoint or f"https://{account}.blob.core.windows.net",
            "azure_storage_use_emulator": "false",
            "azure_skip_signature": "false",
        }
        return {name: value for name, value in options.items() if value}

    def _credentials(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Without the account."""
        if self.key:
            return {"fs.azure.account.auth.type": "SharedKey", "fs.azure.account.key": self.key}
        if self.sas:
            return {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": self.sas}
        if self.secret:
            provider = {
                "oauth.provider.type": f"{ABFS}.oauth2.ClientCredsTokenProvider",
                "oauth2.client.endpoint": f"{LOGIN}/{self.tenant}/oauth2/token",
                "oauth2.client.id": self.client,
                "oauth2.client.secret": self.secret,
            }
        elif environment.get(TOKEN_FILE):
            # Each executor has its own token file: Hadoop puts in the variables where it reads a setting.
            provider = {
                "oauth.provider.type": f"{ABFS}.oauth2.WorkloadIdentityTokenProvider",
                "oauth2.msi.tenant": self.tenant or "${env.AZURE_TENANT_ID}",
                "oauth2.client.id": self.client or "${env.AZURE_CLIENT_ID}",
                "oauth2.token.file": f"${{env.{TOKEN_FILE}}}",
            }
        else:
            provider = {
                "oauth.provider.type": f"{ABFS}.oauth2.MsiTokenProvider",
                "oauth2.client.id": self.client,
                "oauth2.msi.tenant": self.tenant,
            }
        return {
            "fs.azure.account.auth.type": "OAuth",
            **{f"fs.azure.account.{name}": value for name, value in provider.items()},
        }


def azure_access(location: Location, connection: ConnectionInfo) -> AzureAccess:
    """Reads the fields as Airflow's hooks for these types do. Raises CheckFailed: CON040 for an option that is not
    allowed, CON020 if a setting would be ignored or belongs to another account than ``location``."""
    options = {name: str(value) for name, value in allowed_options(connection, EXTRA).items()}
    endpoint = connection.host.rstrip("/") if is_loopback(connection.host) else ""
    _require_account(location, connection, endpoint, "" if TENANT in options else connection.login)
    if TENANT in options and not (connection.login and connection.password):
        raise refused(connection, f"{TENANT} without a secret", "login and password: id and secret of the application")
    key = "" if TENANT in options else connection.password
    secrets = {"password": connection.password, **{name: options.get(name, "") for name in (*KEYS, SAS)}}
    given = [name for name, value in secrets.items() if value]
    if len(given) > 1:
        raise refused(connection, " and ".join(given), "one of them")
    return AzureAccess(
        location,
        key=key or next((options[name] for name in KEYS if name in options), ""),
        sas=options.get(SAS, "").lstrip("?"),
        secret=connection.password if TENANT in options else "",
        client=connection.login if TENANT in options else options.get(CLIENT, ""),
        tenant=options.get(TENANT) or options.get(WORKLOAD_TENANT, ""),
        endpoint=endpoint,
    )


def _require_account(location: Location, connection: ConnectionInfo, endpoint: str, login: str) -> None:
    """``login``: the account's name, unless it is that of an application."""
    host = connection.host.removeprefix("https://").rstrip("/")
    in_host = endpoint.rpartition("/")[2] if endpoint else host.partition(".")[0]
    is_public = host in ("", location.account) or host.endswith((".blob.core.windows.net", ".dfs.core.windows.net"))
    if not endpoint and not is_public:
        raise refused(connection, "a host that is no account of Azure", f"{location.account}.blob.core.windows.net")
    for account in filter(None, (in_host, login)):
        if account != location.account:
            raise refused(connection, f"the storage account {account}", f"{location.account}, as in the location")
