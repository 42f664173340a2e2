"""The container files agree with the rest of the project. They are not built here."""

from __future__ import annotations

import inspect
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_cdc_provider import jars, java
from airflow_cdc_provider.loader.files import load_file

CHECKOUT = Path(__file__).parents[2]
DOCKERFILE = (CHECKOUT / "docker" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((CHECKOUT / "docker" / "compose.yaml").read_text())
KAFKA = yaml.safe_load((CHECKOUT / "docker" / "compose.kafka.yaml").read_text())


def test_the_image_has_a_supported_python_and_java() -> None:
    (minor,) = re.findall(r"^FROM python:3\.(\d+)-", DOCKERFILE, re.MULTILINE)
    requires = re.search(r'requires-python = "([^"]*)"', (CHECKOUT / "pyproject.toml").read_text())
    assert requires is not None
    least, below = map(int, re.findall(r"3\.(\d+)", requires[1]))
    assert least <= int(minor) < below
    (version,) = re.findall(r"openjdk-(\d+)-jre-headless", DOCKERFILE)
    assert int(version) in java.VERSIONS


def test_the_files_and_modules_of_the_image_exist() -> None:
    for sources in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((CHECKOUT / source).exists() for source in sources.split()), sources
    for module in re.findall(r"python -m (\S+)", DOCKERFILE):
        assert find_spec(module) is not None
    assert "AIRFLOW_CDC_JARS=" in DOCKERFILE and "AIRFLOW_CDC_JARS" in inspect.getsource(jars)


@pytest.mark.parametrize("service", ["spark-master", "spark-worker"])
def test_spark_starts_from_the_package_of_the_image(service: str) -> None:
    home = re.search(r"SPARK_HOME=(\S+)", DOCKERFILE)
    spec = find_spec("pyspark")
    assert home is not None and spec is not None and spec.origin is not None
    program = COMPOSE["services"][service]["command"][0]
    assert program.startswith(home[1])
    assert (Path(spec.origin).parent / program.removeprefix(f"{home[1]}/")).is_file()


def connections(service: dict[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix("AIRFLOW_CONN_").lower(): json.loads(value)
        for name, value in service["environment"].items()
        if name.startswith("AIRFLOW_CONN_")
    }


def test_the_broker_listens_on_the_address_in_the_connection_of_the_example() -> None:
    example = load_file(CHECKOUT / "dags" / "replicators" / "examples" / "mysql_debezium.yaml").definition
    known = connections(KAFKA["services"]["airflow"])
    assert known.keys() == {example.source.connection}
    address = known["kafka_cdc"]["extra"]["bootstrap.servers"]
    assert address.partition(":")[0] in KAFKA["services"]
    broker = KAFKA["services"]["kafka"]["environment"]
    assert f"INSIDE://{address}" in broker["KAFKA_ADVERTISED_LISTENERS"].split(",")
    named = {listener.partition(":")[0] for listener in broker["KAFKA_LISTENERS"].split(",")}
    assert named == {one.partition(":")[0] for one in broker["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}
    (published,) = KAFKA["services"]["kafka"]["ports"]
    assert (
        published.startswith("127.0.0.1:")
        and f"OUTSIDE://{published.rpartition(':')[0]}" in (broker["KAFKA_ADVERTISED_LISTENERS"])
    )


def test_airflow_has_the_connections_that_the_example_names() -> None:
    definition = load_file(CHECKOUT / "dags" / "replicators" / "shop.yaml").definition
    assert definition is not None
    known = connections(COMPOSE["services"]["airflow"])
    assert known.keys() == {definition.source.connection, definition.spark.connection}
    assert known[definition.source.connection]["host"] in COMPOSE["services"]
    for volume in COMPOSE["x-provider"]["volumes"]:
        folder = volume.partition(":")[2] + "/"
        assert definition.target.location.startswith(folder) and definition.staging.location.startswith(folder)
