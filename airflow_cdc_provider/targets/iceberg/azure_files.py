"""The files of Iceberg tables in Azure, by pyarrow.

pyiceberg's own class for pyarrow uses the whole authority of a URL as the name of a container, and does not read
credentials of a single account, which catalogs answer with. Its class for fsspec needs another library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.targets.iceberg.store_properties import ACCOUNT_KEY, SAS

ENDPOINT = "adls.connection-string"
"""As Iceberg's Java library reads it: the URL of an account at another address than the public one."""


def azure_files(properties: Mapping[str, Any]) -> Any:
    """A FileIO of pyiceberg for ``abfss://container@account.dfs.core.windows.net/path``."""
    from pyarrow.fs import AzureFileSystem
    from pyiceberg.io.pyarrow import PyArrowFileIO

    class AzureFileIO(PyArrowFileIO):  # type: ignore[misc]
        @staticmethod
        def parse_location(location: str, properties: Mapping[str, Any] | None = None) -> tuple[str, str, str]:
            """Scheme, host of the account, and the path that begins with the container."""
            scheme, authority, path = PyArrowFileIO.parse_location(location)
            container, _, host = authority.partition("@")
            return scheme, host, container + path.removeprefix(authority)

        def _initialize_fs(self, scheme: str, netloc: str | None = None) -> Any:
            return AzureFileSystem(**account_arguments(self.properties, netloc or ""))

    return AzureFileIO(properties)


def account_arguments(properties: Mapping[str, Any], host: str) -> dict[str, str]:
    """Of pyarrow's file system. Without credentials: those of the environment."""
    arguments = {"account_name": host.partition(".")[0]}
    if token := properties.get(f"{SAS}.{host}") or properties.get(SAS):
        arguments["sas_token"] = f"?{token.lstrip('?')}"  # pyarrow appends it to URLs as it is
    elif key := properties.get(ACCOUNT_KEY):
        arguments["account_key"] = key
    if endpoint := properties.get(f"{ENDPOINT}.{host}"):
        scheme, _, address = endpoint.partition("://")
        for kind in ("blob", "dfs"):
            arguments |= {f"{kind}_storage_scheme": scheme, f"{kind}_storage_authority": address.partition("/")[0]}
    return arguments
