"""``airflow cdc decode --source-type TYPE FILE…``: decodes saved messages into change records, one JSON per line."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable, list_names
from airflow_cdc_provider.connectors import FORMATS, SAVED
from airflow_cdc_provider.connectors.decoders.common.saved_messages import read_schema
from airflow_cdc_provider.connectors.registry import REGISTRY
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, StreamItem
from airflow_cdc_provider.core.errors import CommandRefused, DefinitionInvalid, NotFound, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.loader.options import load_options
from airflow_cdc_provider.loader.types import options_class

if TYPE_CHECKING:
    from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter

COLUMNS = ("table", "op", "key", "row", "reason")
IGNORED_PREFIXES = (".", "_")
"""Prefixes of files that are not messages, as for a source of type ``files``."""
MAX_REASONS = 10
UNWRAPPED = "unwrapped: true"


@dataclass
class Tally:
    """``other_tables``: tables that the schema file lacks → number of messages. ``reasons``: why messages cannot be
    decoded → number of messages per file."""

    records: int = 0
    unreadable: int = 0
    ignored: int = 0
    other_tables: Counter[str] = field(default_factory=Counter)
    reasons: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    schemas: set[str] = field(default_factory=set)


@cli_command
def decode(args: argparse.Namespace) -> CommandOutput:
    files = [file for name in args.files for file in _files(name)]
    decoder = load_class("format", args.source_type, SAVED)
    options = _parse_options(args.source_type, args.option)
    schemas = read_schema(_read(args.schema)) if args.schema else None
    if registry := args.registry or options.get(REGISTRY):
        options[REGISTRY] = registry
        decoder = partial(decoder, convert=_converter(args.source_type, registry).messages)
    tally = Tally()
    items = [
        item
        for file in files
        for item in _decoded_items(file, decoder(args.source_type, file, _read(file), schemas, options), tally)
    ]
    problems = [*_unreadable_problems(tally), *_other_tables_problem(tally, args.schema, schemas)]
    counts = {"records": tally.records, "unreadable": tally.unreadable, "ignored": tally.ignored}
    body = {"items": items, **counts, "other_tables": dict(tally.other_tables)}
    listing = OutputTable(COLUMNS, [_table_row(item) for item in items if "op" in item])
    lines = [json.dumps(item, ensure_ascii=False) for item in items]
    code = exit_codes.DATA if problems else exit_codes.OK
    return CommandOutput(body, listing, verbatim=lines, problems=problems, code=code)


def _converter(kind: str, registry: str) -> MessageConverter:
    if kind not in FORMATS or REGISTRY not in {option.name for option in fields(options_class("formats", kind))}:
        what = f"messages of source type {kind} have no registered schemas"
        raise CommandRefused.of("CLI019", what, where="--registry", found=registry, allowed="--source-type debezium")
    from airflow_cdc_provider.cli.decode_registry import message_converter

    return message_converter(registry)


def _files(name: str) -> Iterator[str]:
    """The file itself, or every file of a folder at any depth. Symbolic links are ignored."""
    if Path(name).is_file():
        yield name
        return
    if not Path(name).is_dir():
        raise NotFound.of("CLI005", "not a file", where=name, found="no such file", allowed="files or folders")
    paths = []
    for folder, folders, files in os.walk(name):
        folders[:] = [name for name in folders if not name.startswith(IGNORED_PREFIXES)]
        paths += [Path(folder, name) for name in files if not name.startswith(IGNORED_PREFIXES)]
    paths = sorted(path for path in paths if not path.is_symlink())
    if not paths:
        raise NotFound.of("CLI005", "no message files in the folder", where=name, allowed="files or folders")
    yield from map(str, paths)


def _read(name: str) -> bytes:
    if not Path(name).is_file():
        found = "a folder" if Path(name).is_dir() else "no such file"
        raise NotFound.of("CLI005", "not a file", where=name, found=found, allowed="a file")
    return Path(name).read_bytes()


def _decoded_items(file: str, items: Iterable[StreamItem], tally: Tally) -> Iterator[dict[str, Any]]:
    """Records, and each schema before its first record. Messages of tables that the schema file lacks are counted."""
    for item in items:
        match item:
            case ChangeRecord():
                tally.records += 1
                yield {**to_plain(item), **_unreadable_reason(file, item, tally)}
            case TableSchema():
                if item.schema_id not in tally.schemas:
                    tally.schemas.add(item.schema_id)
                    yield {"schema_id": item.schema_id, "schema": to_plain(item)}
            case Ignored():
                tally.ignored += item.count
                if item.table:
                    tally.other_tables[item.table] += item.count
            case HoleFound():
                yield {"hole": {"table": item.table, "kind": item.kind, "detail": item.detail}}
            case Boundary():
                yield {"transaction_end": dict(item.position)}


def _unreadable_reason(file: str, record: ChangeRecord, tally: Tally) -> dict[str, str]:
    unreadable = undecoded(record)
    if unreadable is None:
        return {}
    tally.unreadable += 1
    tally.reasons[unreadable.reason][file] += 1
    return {"reason": unreadable.reason}


def _table_row(record: Mapping[str, Any]) -> tuple[object, ...]:
    if reason := record.get("reason"):
        return record["table"], record["op"], record["key"], "", reason
    return record["table"], record["op"], record["key"] or record["key_before"], record["after"], ""


def _parse_options(kind: str, texts: Sequence[str]) -> dict[str, Any]:
    options = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            problem = Problem("CLI019", "an option has no value", where="--option", found=text, allowed="KEY=VALUE")
            raise CommandRefused(problem)
        options.append((name, value))
    if options and kind not in FORMATS:
        names = ", ".join(name for name, _ in options)
        what = f"source type {kind} has no options"
        raise CommandRefused.of("CLI019", what, where="--option", found=names, allowed="none")
    try:
        return load_options("formats", kind, options, "--option")
    except DefinitionInvalid as invalid:
        raise CommandRefused(*invalid.problems) from invalid


def _unreadable_problems(tally: Tally) -> Iterator[Problem]:
    """One problem per reason, the most frequent first."""
    by_count = sorted(tally.reasons.items(), key=lambda reason: -reason[1].total())
    for reason, files in by_count[:MAX_REASONS]:
        remedy = f"--option {UNWRAPPED.replace(': ', '=')}" if UNWRAPPED in reason else ""
        yield Problem(
            "CLI020",
            f"{_message_count(files)} cannot be decoded",
            where=list_names(files),
            found=reason,
            data="each is shown as a record with op `unreadable` and its bytes",
            do=remedy,
        )
    if rest := by_count[MAX_REASONS:]:
        others = sum((files for _, files in rest), Counter[str]())
        yield Problem("CLI020", f"{_message_count(others)} more cannot be decoded, for {len(rest):,} other reasons")


def _other_tables_problem(tally: Tally, schema: str | None, schemas: Any) -> Iterator[Problem]:
    if not tally.other_tables:
        return
    yield Problem(
        "CLI021",
        f"{_message_count(tally.other_tables)} of tables that the schema file does not contain",
        where=schema or "",
        found=list_names(f"{table} ({count:,})" for table, count in sorted(tally.other_tables.items())),
        allowed=list_names(_table_names(schemas)),
        do="add their schemas to the file, under the table names of the source",
        data="the messages are counted, but not shown",
    )


def _message_count(counts: Counter[str]) -> str:
    return f"{counts.total():,} message{'' if counts.total() == 1 else 's'}"


def _table_names(schemas: Any) -> Iterator[str]:
    """The tables of a schema file, or the objects of one for Salesforce."""
    tables = schemas.get("objects", [schemas]) if isinstance(schemas, dict) else schemas or ()
    yield from (str(table.get("table", table.get("name"))) for table in tables)
