"""Messages of other tools, after their documentation, and the words that name them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.connectors.formats import datastream_messages as datastream
from tests.connectors.formats import debezium_messages as debezium


class Sample(NamedTuple):
    """``format``: the one that reads the message."""

    words: str
    message: dict[str, Any]
    format: str = ""


CDC = {"op": "c", "before": None, "after": {"id": 1, "v": "x"}}
CANAL = {
    "data": [{"id": "1"}],
    "database": "d",
    "es": 1,
    "id": 2,
    "isDdl": False,
    "mysqlType": {"id": "int"},
    "old": None,
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": 4},
    "table": "t",
    "ts": 3,
    "type": "INSERT",
}
MAXWELL = {"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": 2, "commit": True, "data": {"id": 1}}
DMS = {
    "data": {"id": 1},
    "metadata": {"timestamp": "2024-01-01T00:00:00Z", "record-type": "data", "operation": "insert", "table-name": "t"},
}
GOLDENGATE = {
    "table": "S.T",
    "op_type": "I",
    "op_ts": "2024-01-01 00:00:00.000000",
    "current_ts": "2024-01-01T00:00:00",
    "pos": "00000000000000002928",
    "after": {"ID": 1},
}
CLOUD_EVENT = {
    "id": "name:pg;lsn:1;txId:2",
    "source": "/debezium/postgresql/pg",
    "specversion": "1.0",
    "type": "io.debezium.connector.postgresql.DataChangeEvent",
    "time": "2024-01-01T00:00:00Z",
    "datacontenttype": "application/json",
    "iodebeziumop": "c",
    "data": {"payload": CDC},
}
S3 = {"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": {}}]}
SNS = {"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:x", "Message": "{}"}
GCS = {"kind": "storage#object", "id": "b/o/1", "name": "o", "bucket": "b", "size": "1"}
PUBSUB = {"message": {"data": "e30=", "messageId": "1"}, "subscription": "projects/p/subscriptions/s"}
EVENT_GRID = {
    "topic": "/subscriptions/x",
    "subject": "/blobServices/default",
    "eventType": "Microsoft.Storage.BlobCreated",
    "eventTime": "2024-01-01T00:00:00Z",
    "id": "1",
    "data": {"url": "https://account.example.com/c/b"},
}
NOTIFICATION = {
    "id": "1",
    "aggregate_type": "Initial Snapshot",
    "type": "STARTED",
    "additional_data": {"connector_name": "pg"},
    "timestamp": 1,
}
QLIK = {
    "magic": "atMSG",
    "type": "DT",
    "headers": None,
    "messageSchemaId": None,
    "messageSchema": None,
    "message": {"data": {"id": 1}, "beforeData": None, "headers": {"operation": "INSERT"}},
}
TICDC = {"database": "d", "table": "t", "type": "INSERT", "commitTs": 1, "buildTs": 2, "schemaVersion": 3, "data": {}}
WAL2JSON = {"action": "I", "schema": "public", "table": "t", "columns": [{"name": "id", "type": "integer", "value": 1}]}
OLD_WAL2JSON = {"change": [{"kind": "insert", "schema": "public", "table": "t", "columnnames": ["id"]}]}
MONGO = {"_id": {"_data": "82"}, "operationType": "insert", "ns": {"db": "d", "coll": "c"}, "fullDocument": {"_id": 1}}
SALESFORCE = {"ChangeEventHeader": {"entityName": "Account", "changeType": "CREATE"}, "Name": "x"}
FEED = {"key": [1], "update": {"v": "x"}, "ts": [1, 2]}
DYNAMO = {"eventName": "INSERT", "eventSource": "ydb:document-table", "dynamodb": {"Keys": {"id": {"N": "1"}}}}
SCHEMA_RECORD = {"ts": [1, 2], "tableChanges": [{"type": "ALTER", "table": {"schemaVersion": 1, "columns": {}}}]}

SAMPLES = {
    "Canal": Sample("a message of Canal", CANAL),
    "Maxwell": Sample("a message of Maxwell", MAXWELL),
    "DMS": Sample("a message of AWS DMS", DMS),
    "a row of DMS": Sample("a row of AWS DMS", {"Op": "I", "id": 1}),
    "GoldenGate": Sample("a message of Oracle GoldenGate", GOLDENGATE),
    "Qlik": Sample("a message of Qlik Replicate", QLIK),
    "TiCDC": Sample("a message of TiCDC", TICDC),
    "wal2json": Sample("a message of wal2json", WAL2JSON),
    "version 1 of wal2json": Sample("a message of wal2json", OLD_WAL2JSON),
    "MongoDB": Sample("a change event of MongoDB", MONGO),
    "Salesforce": Sample("a change event of Salesforce", SALESFORCE),
    "CloudEvents": Sample("a CloudEvent", CLOUD_EVENT),
    "S3": Sample("a notification of a cloud", S3),
    "SNS": Sample("a notification of a cloud", SNS),
    "GCS": Sample("a notification of a cloud", GCS),
    "Pub/Sub": Sample("a notification of a cloud", PUBSUB),
    "Event Grid": Sample("a notification of a cloud", EVENT_GRID),
    "a notification of Debezium": Sample("a notification of Debezium", NOTIFICATION),
    "ExtJsonConverter": Sample("Apicurio's ExtJsonConverter", {"schemaId": 4, "payload": CDC}),
    "Datastream": Sample("an event of Datastream", datastream.event(datastream.mysql("INSERT", False)), "datastream"),
    "Debezium": Sample("an envelope of Debezium", debezium.envelope("c", None, {"id": 1}, debezium.pg()), "debezium"),
    "a feed": Sample("a record of a YDB changefeed", FEED, "ydb"),
    "a barrier": Sample("a record of a YDB changefeed", {"resolved": [1, 2]}, "ydb"),
    "a feed of DynamoDB": Sample("a record of DynamoDB Streams", DYNAMO, "ydb"),
    "a schema of a feed": Sample("a schema record of a YDB changefeed", SCHEMA_RECORD, "ydb"),
}
