"""Files as Kafka Connect's sinks write them: messages with schemas, as Avro and as Parquet made of the same Avro."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fastavro import parse_schema, writer

CONNECT = "org.apache.kafka.connect.data."
EXACT = Context(prec=80)
TYPES = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}
LOGICAL = {f"{CONNECT}Date": "date", f"{CONNECT}Time": "time-millis", f"{CONNECT}Timestamp": "timestamp-millis"}

Schema = Mapping[str, Any]


def avro_of(schema: Schema, made: set[str]) -> Any:
    """``made``: the records that were described before; their names suffice."""
    plain = _bare(schema, made)
    return ["null", plain] if schema.get("optional") else plain


def _bare(schema: Schema, made: set[str]) -> Any:
    kind, name = schema["type"], schema.get("name")
    about: dict[str, Any] = {}
    if "version" in schema:
        about["connect.version"] = schema["version"]
    if schema.get("parameters"):
        about["connect.parameters"] = schema["parameters"]
    if name:
        about["connect.name"] = name
    match kind:
        case "struct":
            full = name or f"io.confluent.connect.avro.ConnectDefault{len(made)}"
            if full in made:
                return full
            made.add(full)
            fields = [{"name": one["field"], "type": avro_of(one, made)} for one in schema["fields"]]
            for one in fields:
                one |= {"default": None} if isinstance(one["type"], list) else {}
            space, _, short = full.rpartition(".")
            return {"type": "record", "name": short, "namespace": space, "fields": fields, **about}
        case "array":
            return {"type": "array", "items": avro_of(schema["items"], made), **about}
        case "map":
            return {"type": "map", "values": avro_of(schema["values"], made), **about}
    if kind in ("int8", "int16"):
        about["connect.type"] = kind
    if name == f"{CONNECT}Decimal":
        parameters = schema["parameters"]
        digits = int(parameters.get("connect.decimal.precision", 64))
        about |= {"logicalType": "decimal", "scale": int(parameters["scale"]), "precision": digits}
    elif name in LOGICAL:
        about["logicalType"] = LOGICAL[name]
    plain = TYPES.get(kind, kind)
    return {"type": plain, **about} if about else plain


def avro_file(schema: Schema, payloads: Sequence[Any], codec: str = "deflate") -> bytes:
    out = io.BytesIO()
    writer(out, parse_schema(_root(schema)), [binary(schema, one) for one in payloads], codec=codec)
    return out.getvalue()


def _root(schema: Schema) -> Any:
    return avro_of({**schema, "optional": False}, set())


def binary(schema: Schema, value: Any) -> Any:
    """The Java objects of values that were JSON."""
    if value is None:
        return None
    match schema["type"]:
        case "struct":
            return {one["field"]: binary(one, value[one["field"]]) for one in schema["fields"]}
        case "array":
            return [binary(schema["items"], one) for one in value]
        case "map":
            return {name: binary(schema["values"], one) for name, one in value.items()}
        case "bytes":
            return b64decode(value)
        case "float" | "double":
            return float(value)
        case _:
            return value


def parquet_file(schema: Schema, payloads: Sequence[Any]) -> bytes:
    columns = pa.schema([(one["field"], _arrow(one)) for one in schema["fields"]])
    rows = [_typed(schema, binary(schema, one)) for one in payloads]
    table = pa.Table.from_pylist(rows, columns).replace_schema_metadata(
        {"parquet.avro.schema": json.dumps(_root(schema))}
    )
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _arrow(schema: Schema) -> pa.DataType:
    name = schema.get("name")
    if name == f"{CONNECT}Decimal":
        return pa.decimal256(76, int(schema["parameters"]["scale"]))
    match schema["type"]:
        case "struct":
            return pa.struct([(one["field"], _arrow(one)) for one in schema["fields"]])
        case "array":
            return pa.list_(_arrow(schema["items"]))
        case "map":
            return pa.map_(pa.string(), _arrow(schema["values"]))
    named = {
        f"{CONNECT}Date": pa.date32(),
        f"{CONNECT}Time": pa.time32("ms"),
        f"{CONNECT}Timestamp": pa.timestamp("ms", "UTC"),
    }
    plain = {
        "boolean": pa.bool_(),
        "int8": pa.int32(),
        "int16": pa.int32(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
    }
    return named.get(str(name), plain[schema["type"]])


def _typed(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.get("name") == f"{CONNECT}Decimal":
        unscaled = Decimal(int.from_bytes(value, "big", signed=True))
        return unscaled.scaleb(-int(schema["parameters"]["scale"]), EXACT)
    match schema["type"]:
        case "struct":
            return {one["field"]: _typed(one, value[one["field"]]) for one in schema["fields"]}
        case "array":
            return [_typed(schema["items"], one) for one in value]
        case "map":
            return [(name, _typed(schema["values"], one)) for name, one in value.items()]
        case _:
            return value
