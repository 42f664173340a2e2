"""Names of source tables are joined and taken apart in one module only: elsewhere, dots in them would be confused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import airflow_cdc_provider

ROOT = Path(airflow_cdc_provider.__file__).parent
ROOMS = ("cli", "connectors", "control", "core", "hooks", "loader", "operators", "staging", "state", "ui")
FILES = ("targets/naming.py",)
MODULE = "core/table/source_names.py"
TAKE_APART = frozenset({"partition", "rpartition", "split", "rsplit", "count"})
CUT = frozenset({"startswith", "endswith", "removeprefix", "removesuffix"})
IN_TEXT = re.compile(r"\|\| ?'\.' ?\|\||, ?'\.',|%s\.%s|\{\}\.\{\}|concat_ws\('\.'", re.IGNORECASE)
QUOTED = "quoted"
"""Writes a part in SQL."""

ALLOWED = {
    "a column of a table, as where a problem is": {
        ("cli/assess.py", 'f"{table.table}.{column.name}"'),
        ("connectors/sources/jdbc_poll/check.py", 'f"{source.table}.{name}"'),
        ("connectors/sources/jdbc_poll/check.py", 'f"{table.table}.{column}"'),
        ("connectors/sources/jdbc_poll/check.py", 'f"{table}.{column}"'),
        ("connectors/sources/jdbc_poll/check.py", 'f"{table}.{name}"'),
        ("connectors/sources/salesforce_poll/objects.py", 'f"{table}.{name}"'),
    },
    "names of types and modules in code, Avro and Protobuf": {
        ("cli/commands.py", 'f"airflow_cdc_provider.cli.{module}.{name}"'),
        ("connectors/decoders/common/avro_names.py", 'f"{space}.{name}"'),
        ("connectors/decoders/common/avro_names.py", 'full.rpartition(".")'),
        ("connectors/sources/salesforce/event_schema.py", 'record_name.rpartition(".")'),
        ("connectors/sources/salesforce/proto.py", 'f".{PACKAGE}.{plain}"'),
        ("connectors/sources/salesforce/proto.py", 'f"{PACKAGE}.{name}"'),
        ("hooks/notifiers.py", 'via.rpartition(".")'),
        ("hooks/state.py", 'name.split("=")[-1].split(":")[-1].split(".")'),
    },
    "numbers, times and versions": {
        ("connectors/decoders/common/column_mapping.py", 'f"{text[:TO_SECONDS]}.{nanoseconds % SECOND_NS:09d}{zone}"'),
        ("connectors/decoders/common/times.py", 'text.partition(".")'),
        (
            "connectors/decoders/debezium/converters.py",
            "f\"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}\"",
        ),
        ("connectors/decoders/debezium/undeclared.py", 'text.lstrip("-").replace(".", "", 1)'),
        ("connectors/sources/mysql/cells.py", 'f"{text}.{micros:06d}"'),
        ("connectors/sources/mysql/check.py", "'.'.join(map(str, oldest))"),
        ("connectors/sources/mysql/check.py", 'server.version.split("-")[0].split(".")'),
        (
            "connectors/sources/mysql/json_binary.py",
            'f"{sign}{rest >> 12 & 0x3FF:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}.{micros:06d}"',
        ),
        (
            "connectors/sources/mysql/json_binary.py",
            'f"{text} {rest >> 12 & 31:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}.{micros:06d}"',
        ),
        ("connectors/sources/salesforce/values.py", "f'\"{integer}.{fraction:0<{scale}}\"'"),
        ("connectors/sources/salesforce/values.py", 'repr(value).partition(".")'),
    },
    "the prefix of a topic, or the name of a topic without quotes": {
        (
            "connectors/decoders/common/saved_messages.py",
            "f\"{options.get('topic_prefix') or 'topic'}.{without_quotes(table)}\"",
        ),
        ("connectors/decoders/debezium/decode.py", 'topic.partition(".")'),
        ("connectors/decoders/debezium/decode.py", 'topic.removeprefix(f"{prefix}.")'),
        ("connectors/decoders/debezium/decode.py", 'topic.startswith(f"{prefix}.")'),
        ("connectors/transports/kafka/topic_tables.py", 'other.startswith(f"{topic}.")'),
        ("connectors/transports/kafka/topic_tables.py", 'topic.rpartition(".")'),
    },
    "names of files": {
        ("connectors/decoders/datastream/positions.py", 'name.rpartition(".")'),
        ("connectors/decoders/debezium/servers.py", 'str(source["file"]).rpartition(".")'),
        ("connectors/decoders/debezium/positions.py", 'name.rpartition(".")'),
        ("connectors/sources/mysql/binlog_files.py", 'file.rpartition(".")'),
        ("connectors/sources/mysql/positions.py", 'file.rpartition(".")'),
        ("connectors/transports/files/companions.py", 'path.rpartition(".")'),
        ("connectors/transports/files/companions.py", 'stem.rpartition(".")'),
        ("staging/local_store.py", 'f".{target.name}.{uuid.uuid4().hex}"'),
    },
    "the parts of an id, each in quotes": {
        ("connectors/decoders/debezium/table_ids.py", '".".join(f\'"{part}"\' for part in QUOTED.findall(str(id_)))'),
    },
    "the id of a column: two numbers": {
        ("connectors/sources/postgres/catalog.py", 'f"{oid}.{number}"'),
    },
    "hosts, buckets and settings": {
        ("connectors/sources/postgres/stream.py", 'application_name.rpartition("@")[2].rpartition(".")'),
        ("core/connections/mysql_access.py", 'f"{TLS}.{name}"'),
        (
            "core/connections/postgres_session.py",
            'f"{session_prefix(replicator)}{purpose}@{socket.gethostname()[:20]}.{os.getpid()}"',
        ),
        ("core/storage/azure.py", 'f"{name}.{self.location.host}"'),
        ("core/storage/azure.py", 'host.partition(".")'),
        ("core/storage/locations.py", 'self.host.partition(".")'),
        ("core/storage/s3.py", 'f"{S3A}.{kind}"'),
        ("core/storage/s3.py", 'f"{bucket}.{name}"'),
    },
    "ids of tasks in groups": {
        ("control/close_window.py", 'task_id.partition(".")'),
        ("core/spec/dag_plan.py", 'f"{group}.{step}"'),
        ("core/spec/dag_plan.py", 'self.id.rpartition(".")'),
    },
    "names of target tables, which have no dots, and hosts": {
        ("core/lineage/dataset_names.py", 'f"{found[1]}.{found[2]}"'),
        ("core/lineage/dataset_names.py", "f\"{options['database']}.{options['schema']}.{name}\""),
        ("core/lineage/dataset_names.py", "f\"{options['database']}.{table}\""),
        ("core/lineage/dataset_names.py", "f\"{options['schema']}.{table}\""),
        ("core/lineage/dataset_names.py", "f\"{project}.{options['dataset']}.{table}\""),
    },
    "a path in the YAML or in a request": {
        ("loader/checks.py", "'.'.join(field)"),
        ("ui/problems.py", '".".join(map(str, one["loc"]))'),
    },
}
"""Why → file and expression."""


def _joined(node: ast.JoinedStr) -> bool:
    """Whether a dot alone is between two values, which are not both parts in SQL."""
    for before, dot, after in zip(node.values, node.values[1:], node.values[2:], strict=False):
        if isinstance(dot, ast.Constant) and dot.value == "." and not (_in_sql(before) and _in_sql(after)):
            return True
    return False


def _in_sql(node: ast.expr) -> bool:
    return isinstance(node, ast.FormattedValue) and ast.unparse(node.value).startswith(f"{QUOTED}(")


def _is_suspicious(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(_, name), [ast.Constant("."), *_]) if name in TAKE_APART:
            return True
        case ast.Call(ast.Attribute(_, name), [ast.JoinedStr([*_, ast.Constant(".")])]) if name in CUT:
            return True
        case ast.Call(ast.Attribute(_, "replace"), [ast.Constant("."), *_] | [_, ast.Constant("."), *_]):
            return True
        case ast.Call(ast.Attribute(_, "split"), [ast.Constant(r"\."), *_]):
            return True
        case ast.Call(ast.Attribute(ast.Constant("."), "join"), [ast.Call(ast.Name("map"), [ast.Name(name), _])]):
            return name != QUOTED
        case ast.Call(ast.Attribute(ast.Constant("."), "join")):
            return True
        case ast.BinOp(_, ast.Add(), ast.Constant(".")):
            return True
        case ast.JoinedStr():
            return _joined(node)
        case ast.Constant(str(text)):
            return IN_TEXT.search(text) is not None
    return False


def suspicious(text: str) -> Iterator[str]:
    """The expressions, as written but on one line."""
    found = (ast.get_source_segment(text, node) or "" for node in ast.walk(ast.parse(text)) if _is_suspicious(node))
    return (" ".join(code.split()) for code in found)


def found() -> Iterator[tuple[str, str]]:
    """File and expression."""
    of_rooms = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    for path in sorted([*of_rooms, *(ROOT / file for file in FILES)]):
        name = path.relative_to(ROOT).as_posix()
        if name != MODULE:
            yield from ((name, code) for code in suspicious(path.read_text()))


def test_names_of_tables_are_joined_and_taken_apart_in_one_module() -> None:
    allowed = {entry for entries in ALLOWED.values() for entry in entries}
    assert set(found()) - allowed == set(), f"use {MODULE}"


def test_every_exception_is_still_there() -> None:
    assert {entry for entries in ALLOWED.values() for entry in entries} - set(found()) == set()


@pytest.mark.parametrize(
    "code",
    [
        "table.partition('.')[0]",
        "name.rsplit('.', 2)",
        "table.count('.')",
        "table.startswith(f'{schema}.')",
        "file.replace('/', '.', 1)",
        "'.'.join(parts)",
        "'.'.join(map(str, parts))",
        "schema + '.' + table",
        "f'{schema}.{name}'",
        "f'SELECT {schema}.{quoted(name)}'",
        "'%s.%s' % (schema, name)",
        "'{}.{}'.format(schema, name)",
        "query(\"SELECT n.nspname || '.' || c.relname\")",
        "query(\"SELECT CONCAT(table_schema, '.', table_name)\")",
    ],
)
def test_each_way_to_do_it_is_found(code: str) -> None:
    assert list(suspicious(code))


@pytest.mark.parametrize("code", ["f'{quoted(schema)}.{quoted(name)}'", "'.'.join(map(quoted, parts))", "f'{x}. {y}'"])
def test_parts_in_sql_may_be_joined(code: str) -> None:
    assert not list(suspicious(code))


def test_no_message_has_a_command_written_from_some_of_its_arguments() -> None:
    """``line_of`` writes all of them."""
    written = re.compile(r"airflow cdc [^\n]*\{args\.")
    assert [path for path in ROOT.rglob("*.py") if written.search(path.read_text())] == []


def test_commands_in_messages_have_the_name_of_a_table_as_a_shell_reads_it() -> None:
    plain = re.compile(r"--table [\"f\s]*\{(?!in_shell\()")
    folders = (ROOT, ROOT.parent / "spark_jobs")
    files = [path for folder in folders for path in folder.rglob("*.py") if plain.search(path.read_text())]
    assert files == []
