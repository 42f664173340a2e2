"""A real Kafka broker on loopback that lives as long as the process that started it.

One process is broker and controller (KRaft). Its jars are those of ``jars.lock.json``, fetched once like all others.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.jars import ensure
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import HOST, START_LIMIT_S, STOP_LIMIT_S, not_up

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
# Ends the broker when the pipe on its input closes, which the kernel does for us however our own process ends.
WATCH = 'read -r _; kill -TERM "$1"'


class EmbeddedKafka:
    """One broker in a temporary folder, for clients that know the password.

    ``with EmbeddedKafka() as broker`` makes it, runs it and deletes it; ``stop`` and ``start`` in between keep what is
    in it. ``settings`` are broker properties on top of ``SETTINGS``.
    """

    host = HOST
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.settings = SETTINGS | dict(settings or {})
        self.port, self._inner, self._controller = free_ports(3)
        self.password = secrets.token_urlsafe(16)
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-kafka-"))
        self.log = self.folder / "broker.log"
        self._broker: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EmbeddedKafka:
        try:
            self.start()
        except BaseException:
            self.delete()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def client(self) -> dict[str, str]:
        """Settings of the client library that let it in."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": self.password,
        }

    @property
    def pid(self) -> int | None:
        """None when it is not running."""
        return self._broker.pid if self._broker and self._broker.poll() is None else None

    def start(self) -> None:
        """Raises ``CheckFailed`` with the end of the log if it does not come up."""
        if self.pid is not None:
            return
        if not (self.folder / "data").exists():
            self._create()
        with self.log.open("ab") as log:
            self._broker = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties)),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", WATCH, "watch", str(self._broker.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        self._wait_until_ready(self._broker)

    def stop(self) -> None:
        """A broker that does not end in ``STOP_LIMIT_S`` is killed."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._broker is None:
            return
        self._broker.send_signal(signal.SIGTERM)
        try:
            self._broker.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._broker.kill()
            self._broker.wait(STOP_LIMIT_S)
        self._broker = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    @property
    def _properties(self) -> Path:
        return self.folder / "broker.properties"

    def _java(self, *words: str) -> list[str]:
        class_path = os.pathsep.join(map(str, [*ensure([JARS]), _scala()]))
        return [str(find_java().executable), *JAVA_OPTIONS, "-cp", class_path, *words]

    def _create(self) -> None:
        outside = f"CLIENT://{HOST}:{self.port},BROKER://{HOST}:{self._inner}"
        settings = {
            **self.settings,
            "listeners": f"{outside},CONTROLLER://{HOST}:{self._controller}",
            "advertised.listeners": outside,
            "controller.quorum.voters": f"1@{HOST}:{self._controller}",
            "log.dirs": str(self.folder / "data"),
            "listener.name.client.plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{self.password}";',
        }
        self._properties.touch(0o600)
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        cluster = urlsafe_b64encode(b"C" + secrets.token_bytes(15)).decode().rstrip("=")
        made = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)),
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise CheckFailed(not_up("could not make a Kafka data folder", self.folder, made.stdout + made.stderr))

    def _wait_until_ready(self, broker: subprocess.Popen[bytes]) -> None:
        give_up = time.monotonic() + START_LIMIT_S
        while broker.poll() is None and time.monotonic() < give_up:
            if self._answers():
                return
            time.sleep(0.05)
        self.stop()
        raise CheckFailed(not_up("the embedded Kafka did not start", self.log, self.log.read_text(errors="replace")))

    def _answers(self) -> bool:
        """The port opens when the broker has caught up with its controller."""
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _scala() -> Path:
    """Spark's own: Ivy, as Spark runs it, hands out no other."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("jars/scala-library-2.13.*.jar"))
