"""Access to an object store: what the three libraries that use it need, all from one Airflow connection."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import timedelta
from typing import Any, ClassVar, Protocol

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed

# Only for short failures: Airflow and Spark retry after longer ones.
RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}


class Access(Protocol):
    """The settings of one connection for one location. Each kind of store has its own class."""

    ignores_environment: ClassVar[bool]
    """Whether ``obstore`` uses the connection's credentials alone, whatever the environment contains."""

    @property
    def endpoint(self) -> str:
        """The URL of another store than the public one; else empty."""

    def store_arguments(self) -> dict[str, Any]:
        """The arguments of the class in ``obstore.store``."""

    def delta_options(self) -> dict[str, str]:
        """The storage options of ``deltalake``."""

    def hadoop_settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The settings of Hadoop's file system in the process of a Spark driver with this environment."""

    def overriding_variables(self) -> Set[str]:
        """Environment variables that the libraries would combine with the connection's credentials, or use in place of
        them."""


def refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed.of(
        "CON020",
        "the connection of an object store contains a setting that is not supported",
        where=f"connection {connection.connection_id}",
        found=found,
        allowed=allowed,
        do="correct the connection; to use an identity of the environment, name no connection",
    )


def require_own_credentials(access: Access, connection: ConnectionInfo, environment: Mapping[str, str]) -> None:
    """Raises CheckFailed (CON021) if the environment would override the connection's credentials."""
    found = sorted(name for name in access.overriding_variables() if environment.get(name))
    if found:
        names = ", ".join(found)
        raise CheckFailed.of(
            "CON021",
            f"{names} in the environment does not belong to the credentials of the connection",
            where=f"connection {connection.connection_id}, environment of the worker",
            found=f"credentials in the connection, and {names} in the environment",
            allowed="credentials from one of the two",
            do=f"unset {names}, or remove the credentials from the connection",
        )
