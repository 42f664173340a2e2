"""Messages that the configured format does not read: what they are, and which forms it reads. Pure.

They are identified by their members only, of which reasons contain no values, except for names of connectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_ORDER,
    NO_SCHEMA,
    UNKNOWN_OPERATION,
    DecodeError,
)

NAME = re.compile(r"[A-Za-z][\w.-]{0,63}")
READS: Mapping[str, str] = {
    "debezium": "envelopes with `op` and `source`, alone or as `payload` beside their `schema`, and rows with "
    "`unwrapped: true`",
    "ydb": "changes with `key` and `update`, `reset` or `erase`, `resolved`, `tableChanges`, and the forms of Debezium "
    "(`payload`) and DynamoDB (`dynamodb`)",
    "datastream": "events with `read_method`, `source_metadata` and `payload`",
}
"""Format → the forms that it reads."""


class Form(NamedTuple):
    """``members``: any of these sets identifies it. ``format``: the one that reads it."""

    name: str
    members: tuple[frozenset[str], ...]
    do: str = ""
    format: str = ""
    code: str = UNKNOWN_OPERATION


def _sets(*members: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names.split()) for names in members)


JSON_CONVERTER = "configure the connector with JsonConverter"
LEAVE_OUT = "leave its topic or folder out"
REGISTERED = Form(
    "a message of Apicurio's ExtJsonConverter, whose schema is registered",
    _sets("schemaId payload"),
    "set `registry` under `source` to the Airflow connection of the registry",
    code=NO_SCHEMA,
)
FORMS = (
    REGISTERED,
    Form("an event of Datastream", _sets("read_method source_metadata"), format="datastream"),
    Form("a record of DynamoDB Streams", _sets("dynamodb eventName"), format="ydb"),
    Form("a record of a YDB changefeed", _sets("key update", "key reset", "key erase", "resolved"), format="ydb"),
    Form("an envelope of Debezium", _sets("op source", "source tableChanges"), format="debezium"),
    Form("a schema record of a YDB changefeed", _sets("tableChanges ts"), format="ydb"),
    Form("a message of Canal", _sets("isDdl type", "mysqlType data", "sqlType data")),
    Form("a message of Maxwell", _sets("database table type ts", "database table type xid")),
    Form("a message of Oracle GoldenGate", _sets("op_type op_ts", "op_type pos")),
    Form("a message of AWS DMS", _sets("data metadata", "metadata control")),
    Form("a row of AWS DMS", _sets("Op")),
    Form("a message of Qlik Replicate", _sets("magic message", "beforeData headers")),
    Form("a message of TiCDC", _sets("commitTs type", "commitTs table")),
    Form("a message of wal2json", _sets("change", "action schema table")),
    Form("a change event of MongoDB", _sets("operationType ns")),
    Form("a notification of Debezium", _sets("aggregate_type additional_data", "aggregate_type type"), LEAVE_OUT),
    Form("a CloudEvent", _sets("specversion type source", "specversion data"), JSON_CONVERTER),
    Form(
        "a notification of a cloud or its storage, and no change of a row",
        _sets("Records", "Type TopicArn", "eventType eventTime", "subscription message", "kind bucket", "s3 eventName"),
        "name the location of the files that it is about as a source of `type: files`",
    ),
    Form("a change event of Salesforce", _sets("ChangeEventHeader")),
)
WRAPPER = frozenset({"schema", "payload"})
WRAPPED = "send the payload alone, or with its schema (`schemas.enable=true`)"
OF_FORMATS = {"ydb": "ydb", "ydb_debezium_json": "ydb"}
"""Connector in a source block → the format that reads its envelopes."""


def refusal(message: Mapping[str, Any], format_name: str, otherwise: str) -> DecodeError:
    """``otherwise``: what the message is if it has none of the known forms."""
    form = form_of(message) or _under_payload(message)
    if form is None or form.format == format_name:
        return DecodeError(UNKNOWN_OPERATION, f"{otherwise}; {_reads(format_name)}")
    remedy = form.do or (f"set `format: {form.format}`" if form.format else "")
    return DecodeError(form.code, "; ".join(filter(None, (form.name, _reads(format_name), remedy))))


def form_of(message: Mapping[str, Any]) -> Form | None:
    names = message.keys()
    return next((form for form in FORMS if any(members <= names for members in form.members)), None)


def _under_payload(message: Mapping[str, Any]) -> Form | None:
    """Of ``{"payload": …}`` without a schema of Connect beside it."""
    if "payload" not in message or not message.keys() <= WRAPPER:
        return None
    payload = message["payload"]
    form = form_of(payload) if isinstance(payload, dict) else None
    source = payload.get("source") if isinstance(payload, dict) else None
    connector = source.get("connector") if isinstance(source, dict) else None
    if isinstance(connector, str) and connector in OF_FORMATS:
        return Form(f"an envelope of connector {connector}", (), format=OF_FORMATS[connector])
    beside = "beside a `schema` that is not one of Connect" if "schema" in message else "without its `schema`"
    what = form.name if form else "an object" if isinstance(payload, dict) else "no object"
    return Form(f"{what} under `payload`, {beside}", (), form.do if form and form.do else WRAPPED)


def _reads(format_name: str) -> str:
    return f"`format: {format_name}` reads {READS[format_name]}"


def not_supported(member: str, value: str, supported: Iterable[str], do: str = "") -> DecodeError:
    """A ``value`` that is no name is not repeated."""
    what = f"{member} {value} is not supported" if NAME.fullmatch(value) else f"{member} has no supported name"
    return DecodeError(NO_ORDER, "; ".join(filter(None, (what, f"supported: {', '.join(supported)}", do))))
