"""A real Kafka broker on loopback that ends with the process that started it.

One process is broker and controller (KRaft). Its jars are listed in ``jars.lock.json``.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.sandbox.jars import server_jars
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer, start_problem

JARS = "kafka-broker"
USER = "cdc"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKER",
    "controller.listener.names": "CONTROLLER",
    "sasl.enabled.mechanisms": "PLAIN",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
}


class EmbeddedKafka(EmbeddedServer):
    """One broker with password logins.

    Port and password stay the same over ``stop`` and ``start``. ``settings`` are broker properties added to
    ``SETTINGS``.
    """

    name = "Kafka"
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.settings = SETTINGS | dict(settings or {})
        self.port, self._broker_port, self._controller_port = free_ports(3)
        self.password = secrets.token_urlsafe(16)

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def client(self) -> dict[str, str]:
        """Connection settings for the client library."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": self.password,
        }

    def _command(self) -> list[str]:
        if not (self.folder / "data").exists():
            self._create()
        return _broker_java("kafka.Kafka", str(self._properties))

    def _is_ready(self) -> bool:
        """The port opens when the broker is registered with its controller."""
        return is_open(self.port)

    @property
    def _properties(self) -> Path:
        return self.folder / "broker.properties"

    def _create(self) -> None:
        advertised = f"CLIENT://{HOST}:{self.port},BROKER://{HOST}:{self._broker_port}"
        settings = {
            **self.settings,
            "listeners": f"{advertised},CONTROLLER://{HOST}:{self._controller_port}",
            "advertised.listeners": advertised,
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "log.dirs": str(self.folder / "data"),
            "listener.name.client.plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{self.password}";',
        }
        self._private(self._properties.name, properties(settings))
        cluster = urlsafe_b64encode(b"C" + secrets.token_bytes(15)).decode().rstrip("=")
        formatted = subprocess.run(
            _broker_java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)),
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if formatted.returncode != 0:
            output = formatted.stdout + formatted.stderr
            raise CheckFailed(start_problem("could not create a Kafka data folder", self.folder, output))


def java(jars: Iterable[Path], *arguments: str) -> list[str]:
    """The command line of one of Kafka's programs."""
    return [str(find_java().executable), *JAVA_OPTIONS, "-cp", os.pathsep.join(map(str, jars)), *arguments]


def properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _broker_java(*arguments: str) -> list[str]:
    return java([*server_jars(JARS), _scala()], *arguments)


def _scala() -> Path:
    """The Scala library of Spark: Spark's Ivy does not resolve another one."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("jars/scala-library-2.13.*.jar"))
