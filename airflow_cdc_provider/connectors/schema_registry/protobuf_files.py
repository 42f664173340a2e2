"""Registered Protobuf schemas as descriptors: compiled from their text, or as they are registered by some clients, in
base64. Pure, except for files in a temporary folder that the compiler reads and writes."""

from __future__ import annotations

import tempfile
from base64 import b64decode
from binascii import Error as Base64Error
from pathlib import Path, PurePosixPath
from typing import Any

from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema
from airflow_cdc_provider.core.registry import load_library

FILE = "registered.proto"
CONFLUENT_FILES = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
""",
}
"""Files that schemas of Connect's converter import, without a reference."""


def file_descriptor(schema: RegisteredSchema) -> Any:
    """The descriptor of the file. Raises ValueError, TypeError or the errors of the libraries if it is not valid,
    NotInstalled (ENV010)."""
    texts = {**CONFLUENT_FILES, **{reference.name: reference.text for reference in schema.references}}
    pool = load_library("google.protobuf.descriptor_pool", "source", "registry").DescriptorPool()
    for file in _compile({**texts, FILE: schema.text}):
        pool.Add(file)
    return pool.FindFileByName(FILE)


def _compile(texts: dict[str, str]) -> list[Any]:
    """The descriptors of ``FILE`` and of all files that it imports, each after its imports."""
    descriptors = load_library("google.protobuf.descriptor_pb2", "source", "registry")
    compiler = load_library("grpc_tools.protoc", "source", "registry")
    dates = load_library("google.type.date_pb2", "source", "registry")
    with tempfile.TemporaryDirectory(prefix="cdc-proto-") as folder:
        registered = descriptors.FileDescriptorSet()
        for name, text in texts.items():
            if (serialized := _serialized(text, name, descriptors)) is not None:
                registered.file.append(serialized)
            else:
                _write(Path(folder), name, text)
        known, compiled = Path(folder, "known.bin"), Path(folder, "compiled.bin")
        known.write_bytes(registered.SerializeToString())
        folders = (folder, Path(compiler.__file__).parent / "_proto", Path(dates.__file__).parents[2])
        includes = [f"--proto_path={path}" for path in folders]
        arguments = ["protoc", *includes, f"--descriptor_set_in={known}", "--include_imports"]
        if compiler.main([*arguments, f"--descriptor_set_out={compiled}", FILE]) != 0:
            raise ValueError("protoc")
        return list(descriptors.FileDescriptorSet.FromString(compiled.read_bytes()).file)


def _serialized(text: str, name: str, descriptors: Any) -> Any | None:
    """The descriptor that the text contains; None if it is the source of one."""
    try:
        descriptor = descriptors.FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (Base64Error, ValueError):
        return None
    descriptor.name = name
    return descriptor


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError("a reference outside of the schema")
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
