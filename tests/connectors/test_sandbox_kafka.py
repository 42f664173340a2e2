"""The embedded broker, its client, and the end of the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server]
WAIT_S = 300
ORPHAN = """
import os
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
broker = EmbeddedKafka()
broker.start()
print(broker.pid, broker.folder, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_restart_keeps_the_messages_and_nothing_is_left_behind() -> None:
    with EmbeddedKafka() as broker:
        producer = Producer(broker.client)
        producer.produce("kept", b"7")
        assert producer.flush(WAIT_S) == 0
        first = broker.pid
        broker.stop()
        assert broker.pid is None
        broker.start()
        assert broker.pid not in (None, first)
        consumer = Consumer({**broker.client, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("kept", 0, 0)])
        message = consumer.poll(WAIT_S)
        assert message is not None and message.value() == b"7"
        consumer.close()
        pid, folder = broker.pid, broker.folder
    assert pid is not None and not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_broker_that_cannot_start_reports_its_log_and_leaves_nothing() -> None:
    broker = EmbeddedKafka({"log.retention.ms": "soon"})
    with pytest.raises(CheckFailed, match=r"ENV012 (.|\n)*retention"), broker:
        pass
    assert not broker.folder.exists()


@pytest.mark.nightly
def test_it_ends_with_the_process_that_started_it() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout.split()[0])
    until(lambda: not alive(pid), f"the end of process {pid}")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
