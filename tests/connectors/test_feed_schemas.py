"""The schema of a table of a feed, and what the YAML keeps when the schemas of messages change."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import Resolved
from airflow_cdc_provider.connectors.transports.messages.decoding import Format, message_reader
from airflow_cdc_provider.connectors.transports.messages.discovery import discover_tables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import Regime, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from tests.connectors.formats import ydb_goldens
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator

MYSQL = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
FORM = Format("debezium", {"topic_prefix": "p"})


def messages(setup: ConnectorSetup = MYSQL) -> list[Message]:
    history = Simulator(Random("schemas"), moves=False, late_check=False).history(5)
    return list(DebeziumEncoder(setup, Random(1)).messages(history))


def widened(message: Message) -> Message:
    """The same change, of a table with one more column."""
    body = json.loads(message.value or b"null")
    if body is None:
        return message
    for image in body["schema"]["fields"]:
        image["fields"] = [*image["fields"], {"type": "string", "optional": True, "field": "more"}]
    for image in ("before", "after"):
        if body["payload"][image] is not None:
            body["payload"][image]["more"] = "x"
    return message._replace(value=json.dumps(body).encode())


def test_a_key_of_the_yaml_may_belong_to_two_rows_whatever_columns_are_added() -> None:
    discovered = discover_tables(FORM, messages(), {})
    rule = TableRule("d.t", key=("name",))
    task = TableTask("d.t", "t", selected_schema(rule, discovered.schemas["d.t"]), rule, "", TableState.PENDING)
    made = message_reader(FORM, [task], 1)
    schemas = [item for item in made.items(map(widened, messages())) if isinstance(item, TableSchema)]
    assert [(one.key, one.regime, "more" in one.names) for one in schemas] == [(("name",), Regime.DOUBLE, True)]


def test_a_copy_that_starts_before_the_first_row_has_the_columns_of_that_row() -> None:
    rows = messages()
    discovered = discover_tables(FORM, [*rows[:3], *map(widened, rows[3:])], {})
    assert discovered.schemas["d.t"].names == discover_tables(FORM, rows, {}).schemas["d.t"].names


def test_keys_of_oracle_may_belong_to_two_rows_also_with_a_declared_schema() -> None:
    bare = ConnectorSetup("oracle", schemas=False, transactions=True, headers=True)
    declared = replace(bare.table, regime=Regime.SINGLE)
    task = TableTask("s.t", "t", declared, TableRule("s.t"), "", TableState.PENDING)
    schemas = [i for i in message_reader(FORM, [task], 1).items(messages(bare)) if isinstance(i, TableSchema)]
    assert {one.regime for one in schemas} == {Regime.DOUBLE}


def test_a_topic_with_schema_messages_only_belongs_to_no_table() -> None:
    ddl = {
        "source": {"connector": "mysql", "file": "b.1", "pos": 4, "snapshot": "true"},
        "databaseName": "d",
        "ddl": "CREATE TABLE t (id INT PRIMARY KEY)",
        "tableChanges": [
            {
                "type": "CREATE",
                "id": '"d"."t"',
                "table": {
                    "primaryKeyColumnNames": ["id"],
                    "columns": [
                        {"name": "id", "jdbcType": 4, "typeName": "INT", "typeExpression": "INT", "position": 1}
                    ],
                },
            }
        ],
    }
    bare = ConnectorSetup("mysql", schemas=False, transactions=True, headers=True)
    heads = [Message(json.dumps(ddl).encode(), topic="p", channel="p/0"), *messages(bare)]
    discovered = discover_tables(FORM, heads, {})
    assert [topic for topic, tables in discovered.topics.items() if "d.t" in tables] == ["p.t"]
    assert discovered.schemas["d.t"].key == ("id",)
    assert discovered.without_schema == ()
    assert discover_tables(FORM, heads[1:], {}).without_schema == ("d.t",)


def test_barriers_belong_to_their_channel_and_other_tables_are_counted() -> None:
    golden = next(one for one in ydb_goldens.GOLDENS if any(r.get("op") == Operation.BARRIER for r in one.records))
    schema = golden.schema or ydb_goldens.GOLDENS[0].schema
    assert schema is not None
    task = TableTask(schema.table, "t", schema, TableRule(schema.table), "", TableState.PENDING)
    made = message_reader(Format("ydb", golden.options), [task], 1)
    resolved = Resolved("/shop/orders/feed/0", datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC))
    assert list(made.items([golden.message])) == [resolved]
    other = message_reader(FORM, [replace(task, table="d.u", rule=TableRule("d.u"))], 1)
    found = list(other.items(messages()))
    assert found and not [item for item in found if isinstance(item, ChangeRecord)]
