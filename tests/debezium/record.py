"""``python -m tests.debezium.record``: the messages of a real Debezium about the changes here, kept as files.

The changes are recorded twice: with the schema in every message, and bare; PostgreSQL's once more, with decimals as
numbers. The final rows of the source are kept beside the messages. ``python -m tests.debezium.record mariadb_11``, with
MariaDB 11.8 in ``PATH``, records that server alone: it gives all changes of a transaction one position. ``… renames``,
with a MySQL in ``MYSQLD``, records the schema-change topics of MariaDB and MySQL.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.mysql import EmbeddedMySQL
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium import mariadb_changes, postgres_changes, renames
from tests.debezium.plain import row
from tests.debezium.topics import topic_messages

RECORDED = Path(__file__).with_name("recorded")
BARE = {
    f"{side}.converter{setting}": value
    for side in ("key", "value")
    for setting, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
}
NUMERIC = {"value.converter": BARE["value.converter"], "value.converter.decimal.format": "NUMERIC"}


MARIADB_11 = "mariadb_11"
UNNUMBERED = {"provide.transaction.metadata": "false"}


def main() -> None:
    if MARIADB_11 in sys.argv[1:]:
        _record_mariadb_11()
    elif renames.PREFIX in sys.argv[1:]:
        _record_renames()
    else:
        _record_all()


def _record_renames() -> None:
    for kind, server_class in {"mariadb": EmbeddedMariaDB, "mysql": EmbeddedMySQL}.items():
        with EmbeddedKafka() as broker, server_class() as server:
            renames.prepare(server)
            with EmbeddedDebezium(broker, {kind: renames.settings(server, kind) | BARE}) as debezium:
                first = len(topic_messages(debezium, renames.PREFIX))
                renames.apply_changes(server)
                messages = topic_messages(debezium, renames.PREFIX, first)
            _keep(f"{kind}_renames", [one for one in messages if one["topic"] == renames.PREFIX])


def _record_mariadb_11() -> None:
    with EmbeddedKafka() as broker, EmbeddedMariaDB() as mariadb:
        mariadb_changes.prepare(mariadb)
        connectors = {
            MARIADB_11: mariadb_changes.connector(mariadb),
            f"{MARIADB_11}_unnumbered": mariadb_changes.connector(mariadb, "my_unnumbered", 4712) | UNNUMBERED,
        }
        _record(broker, connectors, lambda: mariadb_changes.apply_changes(mariadb))


def _record_all() -> None:
    with EmbeddedKafka() as broker, EmbeddedPostgres() as postgres, EmbeddedMariaDB() as mariadb:
        postgres_changes.prepare(postgres)
        mariadb_changes.prepare(mariadb)
        connectors = {
            "postgres": postgres_changes.connector(postgres),
            "postgres_bare": postgres_changes.connector(postgres, "pg_bare") | BARE,
            "postgres_numeric": postgres_changes.connector(postgres, "pg_numeric") | NUMERIC,
            "mariadb": mariadb_changes.connector(mariadb),
            "mariadb_bare": mariadb_changes.connector(mariadb, "my_bare", 4712) | BARE,
        }

        def apply_changes() -> None:
            postgres_changes.apply_changes(postgres)
            mariadb_changes.apply_changes(mariadb)

        _record(broker, connectors, apply_changes)
        for name, end in (
            ("postgres", postgres_changes.final_rows(postgres)),
            ("mariadb", mariadb_changes.final_rows(mariadb)),
        ):
            text = json.dumps({table: [row(one) for one in rows] for table, rows in end.items()}, indent=1)
            (RECORDED / f"{name}_end.json").write_text(text + "\n", encoding="utf-8")


def _record(broker: EmbeddedKafka, connectors: Mapping[str, dict[str, str]], apply_changes: Callable[[], None]) -> None:
    with EmbeddedDebezium(broker, connectors) as debezium:
        first = {name: len(topic_messages(debezium, one["topic.prefix"])) for name, one in connectors.items()}
        apply_changes()
        for name, one in connectors.items():
            _keep(name, topic_messages(debezium, one["topic.prefix"], first[name]))


def _keep(name: str, messages: list[dict[str, Any]]) -> None:
    lines = "".join(dumps(one) + "\n" for one in messages)
    (RECORDED / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    print(f"{name}: {len(messages)} messages")


if __name__ == "__main__":
    main()
