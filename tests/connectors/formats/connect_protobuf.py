"""Connect schemas and values as Protobuf, as Confluent's ProtobufConverter writes them with
``optional.for.nullables=true``, from an independent reading. Maps are not supported."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

Schema = Mapping[str, Any]
CONNECT = "org.apache.kafka.connect.data."
F = FieldDescriptorProto
SCALARS = {
    **dict.fromkeys(("int8", "int16", "int32"), F.TYPE_INT32),
    "int64": F.TYPE_INT64,
    "float": F.TYPE_FLOAT,
    "double": F.TYPE_DOUBLE,
    "boolean": F.TYPE_BOOL,
    "string": F.TYPE_STRING,
    "bytes": F.TYPE_BYTES,
}
WELL_KNOWN = {
    f"{CONNECT}Decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    f"{CONNECT}Date": ("google.type.Date", "google/type/date.proto"),
    f"{CONNECT}Time": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    f"{CONNECT}Timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}


def message_class(schema: Schema, pool: descriptor_pool.DescriptorPool, file: str, marks_nulls: bool = True) -> Any:
    """``pool``: with the files of ``WELL_KNOWN``."""
    package, _, name = str(schema.get("name") or "ConnectDefault1").rpartition(".")
    made = FileDescriptorProto(name=file, package=package, syntax="proto3")
    made.message_type.append(_message(name, f".{package}" if package else "", schema, made, marks_nulls))
    pool.Add(made)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}" if package else name))


def _message(name: str, scope: str, schema: Schema, file: FileDescriptorProto, marks_nulls: bool) -> DescriptorProto:
    made = DescriptorProto(name=name)
    for number, field in enumerate(schema["fields"], 1):
        _add_field(made, f"{scope}.{name}", number, field, file, marks_nulls)
    return made


def _add_field(
    message: DescriptorProto, scope: str, number: int, field: Schema, file: FileDescriptorProto, marks_nulls: bool
) -> None:
    made = message.field.add(name=field["field"], number=number, label=F.LABEL_OPTIONAL)
    inner = field
    if field["type"] == "array":
        made.label, inner = F.LABEL_REPEATED, field["items"]
    if str(inner.get("name")) in WELL_KNOWN:
        made.type, (name, location) = F.TYPE_MESSAGE, WELL_KNOWN[inner["name"]]
        made.type_name = f".{name}"
        if location not in file.dependency:
            file.dependency.append(location)
    elif inner["type"] == "struct":
        name = str(inner.get("name") or f"ConnectDefault{number + 1}").rpartition(".")[2]
        name = f"{name}Message" if name == field["field"] else name
        made.type, made.type_name = F.TYPE_MESSAGE, f"{scope}.{name}"
        if name not in {one.name for one in message.nested_type}:
            message.nested_type.append(_message(name, scope, inner, file, marks_nulls))
    else:
        made.type = SCALARS[inner["type"]]
        if marks_nulls and inner.get("optional") and made.label == F.LABEL_OPTIONAL:
            made.proto3_optional, made.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")


def fill(message: Any, schema: Schema, payload: Mapping[str, Any]) -> Any:
    for field in schema["fields"]:
        value, name = payload[field["field"]], field["field"]
        if value is None:
            continue
        if field["type"] == "array":
            for item in value:
                if field["items"]["type"] == "struct":
                    fill(getattr(message, name).add(), field["items"], item)
                elif str(field["items"].get("name")) in WELL_KNOWN:
                    _fill_well_known(getattr(message, name).add(), field["items"], item)
                else:
                    getattr(message, name).append(_scalar(field["items"], item))
        elif str(field.get("name")) in WELL_KNOWN:
            _fill_well_known(getattr(message, name), field, value)
        elif field["type"] == "struct":
            getattr(message, name).SetInParent()
            fill(getattr(message, name), field, value)
        else:
            setattr(message, name, _scalar(field, value))
    return message


def _scalar(schema: Schema, value: Any) -> Any:
    if schema["type"] == "bytes":
        return b64decode(value)
    return float(value) if schema["type"] in ("float", "double") else value


def _fill_well_known(message: Any, schema: Schema, value: Any) -> None:
    message.SetInParent()
    match schema["name"].removeprefix(CONNECT):
        case "Decimal":
            message.value, message.scale = b64decode(value), int(schema["parameters"]["scale"])
        case "Date":
            day = date(1970, 1, 1) + timedelta(days=value)
            message.year, message.month, message.day = day.year, day.month, day.day
        case "Time":
            seconds, milliseconds = divmod(value, 1000)
            message.hours, message.minutes, message.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
            message.nanos = milliseconds * 1_000_000
        case "Timestamp":
            message.FromDatetime(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value))
