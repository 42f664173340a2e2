"""A window of a topic, against Spark reading and counting the same messages, in one session."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from random import Random

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from airflow_cdc_provider import jars
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind, TableTask
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import LOGIN, EmbeddedKafka
from airflow_cdc_provider.staging.open_store import open_log
from spark_jobs.extract import land_window
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.sessions import Application, build_session
from tests.bench.figures import Figure, alternating, seconds
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.kafka_topics import Topics
from tests.spark.pipelines.feeds.pipeline import definition
from tests.spark.replicator import LOCAL

TRANSACTIONS, PARTITIONS, ROUNDS = 1500, 2, 3
READER = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""The reader of Spark. Not every version of the second jar is available."""
AT_MOST = 2.5


def window(folder: Path, count: int) -> list[Figure]:
    """``count`` messages of Debezium with their schemas, of one table."""
    manner = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
    history = Simulator(Random(1), moves=True, late_check=False).history(TRANSACTIONS)
    some = list(DebeziumEncoder(manner, Random(1)).messages(history))
    with EmbeddedKafka() as broker:
        topic = Topics(broker, "p").make(manner.table.table, PARTITIONS)
        fill(broker, topic, islice(cycle(some), count))
        info = ConnectionInfo("k", extra=broker.client)
        options = {"topics": [topic], "format": "debezium", "topic_prefix": "p"}
        source = KafkaSource(Source("kafka", "k", options=options), info, "feed")
        spark = session(folder)
        ours, sparks = alternating(
            ROUNDS,
            lambda: landed(spark, folder, Source("kafka", "k", options=options), source, info),
            lambda: seconds(lambda: counted(spark, broker, topic, count)),
        )
        spark.stop()
    return [
        Figure(
            f"window of {count:,} messages of Kafka / Spark reads and counts",
            ours / sparks,
            "x",
            f"≤ {AT_MOST}",
            ours / sparks <= AT_MOST,
            f"ours {ours:.1f} s, {count / ours / 1000:.0f} k messages/s into the change log; Spark {sparks:.1f} s",
        )
    ]


def fill(broker: EmbeddedKafka, topic: str, messages: Iterable[Message]) -> None:
    producer = Producer(
        {**broker.client, "compression.type": "lz4", "linger.ms": 50, "queue.buffering.max.messages": 0}
    )
    for number, one in enumerate(messages):
        producer.produce(topic, one.value, one.key, partition=number % PARTITIONS, headers=list(one.headers))
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def session(folder: Path) -> SparkSession:
    known = [jars.Jar(one, f"{one.split(':')[1]}-{one.split(':')[2]}.jar", "") for one in READER]
    jar_folder = folder / "kafka-jars"
    jar_folder.mkdir()
    fetched = jars.fetch(known, jar_folder)
    return build_session("bench", ["delta"], {**LOCAL, "spark.driver.extraClassPath": ":".join(map(str, fetched))})


def landed(spark: SparkSession, folder: Path, kafka: Source, source: KafkaSource, info: ConnectionInfo) -> float:
    """Seconds of one window from the first message to the last, into a change log of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as log_folder:
        (schema,) = source.tables()
        made = definition(Path(log_folder), kafka, [schema.table])
        log = open_log(made, ConnectionInfo())
        log_id = log.create("bench", "2026-01-01T00:00:00Z")
        limit = dict(source.status({}, [schema.table]).limit)
        task = TableTask(schema.table, "t", schema, TableRule(schema.table), "0" * 64, TableState.REPLICATING)
        step = Step(
            StepKind.EXTRACT, made, "bench", "bench", "steps/bench", "", "bench", log_id, 1, source.identity(), (task,),
            window=1, limit=limit,
        )  # fmt: skip
        job = Job(step, Secrets(info), Application(lambda: spark, lambda: "local[2]"))
        took = seconds(lambda: land_window(job))
        assert json.dumps(log.manifest(1).hi) == json.dumps(limit), "the window ends at the limit"
        return took


def counted(spark: SparkSession, broker: EmbeddedKafka, topic: str, count: int) -> None:
    client = {
        "kafka.bootstrap.servers": broker.servers,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{LOGIN} username="{broker.user}" password="{broker.password}";',
    }
    rows = spark.read.format("kafka").options(**client, subscribe=topic).load()
    # Spark computes a count of rows alone from the offsets, without reading.
    assert rows.selectExpr("count(*) AS n", "sum(length(value)) AS bytes").collect()[0]["n"] == count
