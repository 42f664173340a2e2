"""``airflow cdc decode --source-type TYPE FILE``: what saved messages mean, as change records in lines of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_cdc_provider.cli import answer as a
from airflow_cdc_provider.cli.answer import Answer
from airflow_cdc_provider.cli.running import command
from airflow_cdc_provider.connectors import SAVED
from airflow_cdc_provider.connectors.formats.saved import read_schema
from airflow_cdc_provider.connectors.source import Boundary, HoleMet, Ignored, StreamItem
from airflow_cdc_provider.core.changes import ChangeRecord, Operation
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.registry import class_of
from airflow_cdc_provider.core.tables import TableSchema


@dataclass
class Tally:
    records: int = 0
    unreadable: int = 0
    ignored: int = 0


@command
def decode(args: argparse.Namespace) -> Answer:
    for name in filter(None, (args.file, args.schema)):
        if not Path(name).is_file():
            found = "a folder" if Path(name).is_dir() else "no such file"
            problem = Problem("CLI005", "not a file", where=name, found=found, allowed="a file of messages")
            return Answer({"error": a.NO_INPUT}, problems=[problem], code=a.NO_INPUT)
    decoded = class_of("format", args.source_type, SAVED)
    schemas = read_schema(Path(args.schema).read_bytes()) if args.schema else None
    data, tally = Path(args.file).read_bytes(), Tally()
    told = list(_told(decoded(args.source_type, args.file, data, schemas, _options(args.option)), tally))
    body = {"items": told, **to_plain(tally)}
    problems = [] if not tally.unreadable else [_unreadable(args.file, tally)]
    lines = [json.dumps(one, ensure_ascii=False) for one in told]
    return Answer(body, verbatim=lines, problems=problems, code=a.DATA if problems else a.OK)


def _told(items: Iterator[StreamItem], tally: Tally) -> Iterator[dict[str, Any]]:
    """Records, and schemas where they begin; what belongs to no table of the schema file is counted."""
    for item in items:
        match item:
            case ChangeRecord():
                tally.records += 1
                tally.unreadable += item.op == Operation.UNREADABLE
                yield to_plain(item)
            case TableSchema():
                yield {"schema_id": item.schema_id, "schema": to_plain(item)}
            case Ignored():
                tally.ignored += item.count
            case HoleMet():
                yield {"hole": {"table": item.table, "kind": item.kind, "detail": item.detail}}
            case Boundary():
                yield {"transaction_end": dict(item.position)}


def _options(written: list[str]) -> dict[str, Any]:
    options = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not equals:
            raise CommandRefused(Problem("CLI019", "an option without value", found=one, allowed="KEY=VALUE"))
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def _unreadable(file: str, tally: Tally) -> Problem:
    return Problem(
        "CLI020",
        f"{tally.unreadable:,} messages cannot be read",
        where=file,
        data="each is told as a record whose op is unreadable, with its bytes and the reason",
        do="look at `reason` in its `after`",
    )
