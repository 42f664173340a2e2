"""``airflow cdc decode --source-type TYPE FILE…``: what saved messages mean, as change records in lines of JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import NotFound
from airflow_cdc_provider.connectors import FORMATS, SAVED
from airflow_cdc_provider.connectors.decoders.common.saved_messages import read_schema
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, StreamItem
from airflow_cdc_provider.core.errors import CommandRefused, DefinitionInvalid, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import undecoded as told_unreadable
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.loader.options import load_options

COLUMNS = ("table", "op", "key", "row", "reason")
NOT_DECODED = (".", "_")
"""Files that begin so lie beside the messages, as a source of files has it."""
MOST_SHOWN = 10
UNWRAPPED = "unwrapped: true"


@dataclass
class Tally:
    """``elsewhere``: tables outside of the schema file, with how many messages; ``reasons``: why messages cannot be
    read, with how many of which files."""

    records: int = 0
    unreadable: int = 0
    ignored: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)
    reasons: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    schemas: set[str] = field(default_factory=set)


@command
def decode(args: argparse.Namespace) -> Answer:
    files = [file for name in args.files for file in _files(name)]
    decoded = load_class("format", args.source_type, SAVED)
    options = _options(args.source_type, args.option)
    schemas = read_schema(_read(args.schema)) if args.schema else None
    tally = Tally()
    told = [
        one
        for file in files
        for one in _told(file, decoded(args.source_type, file, _read(file), schemas, options), tally)
    ]
    problems = [*_unreadable(tally), *_elsewhere(tally, args.schema, schemas)]
    counts = {"records": tally.records, "unreadable": tally.unreadable, "ignored": tally.ignored}
    body = {"items": told, **counts, "elsewhere": dict(tally.elsewhere)}
    listing = OutputTable(COLUMNS, [_row(one) for one in told if "op" in one])
    lines = [json.dumps(one, ensure_ascii=False) for one in told]
    code = a.DATA if problems else a.OK
    return Answer(body, listing, verbatim=lines, problems=problems, code=code)


def _files(name: str) -> Iterator[str]:
    """The file itself, or every file of a folder at any depth; links are not followed."""
    if Path(name).is_file():
        yield name
        return
    if not Path(name).is_dir():
        raise NotFound(Problem("CLI005", "not a file", where=name, found="no such file", allowed="files or folders"))
    found = []
    for folder, folders, files in os.walk(name):
        folders[:] = [one for one in folders if not one.startswith(NOT_DECODED)]
        found += [Path(folder, one) for one in files if not one.startswith(NOT_DECODED)]
    found = sorted(path for path in found if not path.is_symlink())
    if not found:
        raise NotFound(Problem("CLI005", "no file of messages in the folder", where=name, allowed="files or folders"))
    yield from map(str, found)


def _read(name: str) -> bytes:
    if not Path(name).is_file():
        found = "a folder" if Path(name).is_dir() else "no such file"
        raise NotFound(Problem("CLI005", "not a file", where=name, found=found, allowed="a file"))
    return Path(name).read_bytes()


def _told(file: str, items: Iterable[StreamItem], tally: Tally) -> Iterator[dict[str, Any]]:
    """Records, and schemas where they begin; what belongs to no table of the schema file is counted."""
    for item in items:
        match item:
            case ChangeRecord():
                tally.records += 1
                yield {**to_plain(item), **_reason(file, item, tally)}
            case TableSchema():
                if item.schema_id not in tally.schemas:
                    tally.schemas.add(item.schema_id)
                    yield {"schema_id": item.schema_id, "schema": to_plain(item)}
            case Ignored():
                tally.ignored += item.count
                if item.table:
                    tally.elsewhere[item.table] += item.count
            case HoleFound():
                yield {"hole": {"table": item.table, "kind": item.kind, "detail": item.detail}}
            case Boundary():
                yield {"transaction_end": dict(item.position)}


def _reason(file: str, record: ChangeRecord, tally: Tally) -> dict[str, str]:
    what = told_unreadable(record)
    if what is None:
        return {}
    tally.unreadable += 1
    tally.reasons[what.reason][file] += 1
    return {"reason": what.reason}


def _row(record: Mapping[str, Any]) -> tuple[object, ...]:
    if reason := record.get("reason"):
        return record["table"], record["op"], record["key"], "", reason
    return record["table"], record["op"], record["key"] or record["key_before"], record["after"], ""


def _options(kind: str, written: Sequence[str]) -> dict[str, Any]:
    given = []
    for one in written:
        name, equals, value = one.partition("=")
        if not equals:
            raise CommandRefused(Problem("CLI019", "an option without value", found=one, allowed="KEY=VALUE"))
        given.append((name, value))
    if given and kind not in FORMATS:
        names = ", ".join(name for name, _ in given)
        what = f"messages of {kind} are read without options"
        raise CommandRefused(Problem("CLI019", what, where="--option", found=names, allowed="none"))
    try:
        return load_options("formats", kind, given, "--option")
    except DefinitionInvalid as invalid:
        raise CommandRefused(*invalid.problems) from invalid


def _unreadable(tally: Tally) -> Iterator[Problem]:
    """One for each reason, the commonest first."""
    by_count = sorted(tally.reasons.items(), key=lambda one: -one[1].total())
    for reason, files in by_count[:MOST_SHOWN]:
        proposed = f"--option {UNWRAPPED.replace(': ', '=')}" if UNWRAPPED in reason else ""
        yield Problem(
            "CLI020",
            f"{_messages(files)} cannot be read",
            where=_some(files),
            found=reason,
            data="each is told as a record whose op is unreadable, with its bytes",
            do=proposed,
        )
    if rest := by_count[MOST_SHOWN:]:
        more = sum((files for _, files in rest), Counter[str]())
        yield Problem("CLI020", f"{_messages(more)} more cannot be read, for {len(rest):,} other reasons")


def _elsewhere(tally: Tally, schema: str | None, told: Any) -> Iterator[Problem]:
    if not tally.elsewhere:
        return
    yield Problem(
        "CLI021",
        f"{_messages(tally.elsewhere)} of tables that --schema does not name",
        where=schema or "",
        found=_some(f"{table} ({count:,})" for table, count in sorted(tally.elsewhere.items())),
        allowed=_some(_named(told)),
        do="add their schemas to the file; names count as the source spells them",
        data="they are counted, and not shown",
    )


def _messages(counted: Counter[str]) -> str:
    return f"{counted.total():,} message{'' if counted.total() == 1 else 's'}"


def _named(schemas: Any) -> Iterator[str]:
    """The tables of a schema file, or the objects of Salesforce's."""
    told = schemas.get("objects", [schemas]) if isinstance(schemas, dict) else schemas or ()
    yield from (str(one.get("table", one.get("name"))) for one in told)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
    return ", ".join(listed[:MOST_SHOWN]) + more
