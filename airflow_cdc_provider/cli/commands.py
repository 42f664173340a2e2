"""The commands of ``airflow cdc``. Imported by every ``airflow`` call, so it names the implementations and no more."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from airflow.cli.cli_config import ARG_OUTPUT, ActionCommand, Arg, CLICommand, GroupCommand, lazy_load_command

from airflow_cdc_provider.connectors import SAVED

USAGE = 64


class StrictArg(Arg):
    """An argument whose command answers mistakes with its own usage on stderr and exit code 64, unknown options too."""

    def __init__(self, *flags: str, **options: Any) -> None:
        self.flags = flags
        self.kwargs = options

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(*self.flags, **self.kwargs)
        parser.error = partial(_refuse, parser)  # type: ignore[method-assign]
        parser.parse_known_args = partial(_parse_strictly, parser)  # type: ignore[method-assign,assignment]


class Explained(StrictArg):
    """An argument whose command explains more in its help; the module named in ``by`` says it when it is asked for."""

    def __init__(self, *flags: str, by: str, **options: Any) -> None:
        super().__init__(*flags, **options)
        self._by = by

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        super().add_to_parser(parser)
        parser.format_help = partial(_explain, parser, self._by)  # type: ignore[method-assign]


def _explain(parser: argparse.ArgumentParser, module: str) -> str:
    parser.epilog = import_module(module).EPILOG
    return argparse.ArgumentParser.format_help(parser)


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    parser.print_usage(sys.stderr)
    parser.exit(USAGE, f"{parser.prog}: {message}\n")


def _parse_strictly(
    parser: argparse.ArgumentParser, args: Any = None, namespace: argparse.Namespace | None = None
) -> tuple[argparse.Namespace, list[str]]:
    parsed, unknown = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
    if unknown:
        from airflow_cdc_provider.core.nearest import did_you_mean

        known = [flag for action in parser._actions for flag in action.option_strings]
        _refuse(parser, f"unknown: {' '.join(unknown)}. {did_you_mean(unknown[0], known)}".rstrip(". "))
    return parsed, unknown


FILES = StrictArg("files", help="YAML files of replicators.", nargs="+", metavar="FILE")
NAME = StrictArg("name", help="Name of the replicator, or its YAML file.", metavar="NAME")
ANY_NAME = StrictArg("name", help="One replicator, by name or YAML file; all without it.", nargs="?", metavar="NAME")
TABLE = StrictArg("--table", help="Source table, once or more often; all without it.", action="append", default=[])
# Airflow keeps its log lines off stdout for commands that have an argument "output".
OUTPUT = StrictArg(*ARG_OUTPUT.flags, **ARG_OUTPUT.kwargs)
JSON = StrictArg(
    "--json",
    help="Short for --output json.",
    dest="output",
    action="store_const",
    const="json",
    default=argparse.SUPPRESS,
)
ANSWER = (OUTPUT, JSON)
NOW = StrictArg("--now", help="Start the run that carries it out.", action="store_true")
WAIT = StrictArg("--wait", help="Follow the request until it is done.", action="store_true")
KEY = StrictArg("--key", help="Idempotency key: the same key is the same request.")
REASON = StrictArg("--reason", help="Why; shown in status and audit.", default="")
YES = StrictArg("--yes", help="Let the new copy delete more rows than resync.max_delete.", action="store_true")

TO = StrictArg("--to", help="A window, or a time (ISO; UTC without zone).", required=True, metavar="WINDOW|TIME")

PORT = StrictArg("--port", help="Port of its REST front; any free one without it.", type=int, default=0)
PUBSUB_PORT = StrictArg("--pubsub-port", help="Port of its Pub/Sub service.", type=int, default=0)
SIZE = StrictArg("--size", help="What it holds.", choices=("empty", "small", "demo"), default="small")
LOAD = StrictArg("--load", help="Change records all the time.", action="store_true")
TLS = StrictArg("--tls", help="A second front, with a certificate of its own.", action="store_true")
KEEPALIVE = StrictArg("--keepalive", help="Seconds until a quiet stream gets an answer.", type=float, default=5.0)
OVERFLOW = StrictArg("--overflow", help="Changes until a transaction overflows.", type=int, default=100_000)

RECORD = StrictArg("id", help="Id of the record, as `quarantine list` shows it.", metavar="ID")
RECORDS = StrictArg("ids", help="Ids of records; all of --table without them.", nargs="*", metavar="ID")
SET = StrictArg(
    "--set",
    help="A right value, once or more often: JSON, or a text.",
    action="append",
    default=[],
    metavar="COLUMN=VALUE",
)
SOURCE_TYPE = Explained(
    "--source-type",
    help=f"Whose messages they are: {', '.join(sorted(SAVED))}.",
    required=True,
    metavar="TYPE",
    by="airflow_cdc_provider.cli.decode_help",
)
SCHEMA = StrictArg("--schema", help="JSON file of the table's schema, where messages do not tell it.", metavar="FILE")
OPTION = StrictArg(
    "--option", help="A key of the source type, once or more often.", action="append", default=[], metavar="KEY=VALUE"
)
MESSAGES = StrictArg(
    "files",
    help="Saved messages: one per line, or Avro or Parquet files; or folders of them.",
    nargs="+",
    metavar="FILE",
)
LINES = StrictArg(
    *ARG_OUTPUT.flags,
    **{
        **ARG_OUTPUT.kwargs,
        "default": "",
        "help": "Output format. Allowed values: json, yaml, plain, table (default: a line of JSON per record)",
    },
)
WHY = StrictArg("--reason", help="Why it may be lost; stands in the audit.", required=True)

DECODE = (SOURCE_TYPE, SCHEMA, OPTION, MESSAGES, LINES, JSON)
REQUEST = (NAME, TABLE, NOW, WAIT, KEY, REASON, *ANSWER)
REWIND = (NAME, TABLE, TO, NOW, WAIT, KEY, REASON, *ANSWER)
REPLAY = (NAME, RECORDS, TABLE, SET, NOW, WAIT, KEY, REASON, *ANSWER)
DISCARD = (NAME, RECORDS, TABLE, WHY, NOW, WAIT, KEY, *ANSWER)
ORG = (PORT, PUBSUB_PORT, SIZE, LOAD, TLS, KEEPALIVE, OVERFLOW, *ANSWER)


def _command(name: str, module: str, help: str, *args: Arg) -> ActionCommand:
    function = lazy_load_command(f"airflow_cdc_provider.cli.{module}.{name}")
    return ActionCommand(name=name, help=help, func=function, args=args)


def get_cli_commands() -> list[CLICommand]:
    return [
        GroupCommand(
            name="cdc",
            help="Replicate tables: check, follow and steer replicators",
            subcommands=(
                _command("validate", "validate", "Show every error of YAML files", FILES, *ANSWER),
                _command("plan", "plan", "Show what the next run would do, per table", NAME, *ANSWER),
                _command("check", "check", "Show every obstacle at source, target and staging", NAME, *ANSWER),
                _command("status", "status", "Show states, cursors, rows and freshness", ANY_NAME, *ANSWER),
                _command("pause", "requests", "Take tables out of the stream", *REQUEST),
                _command("resume", "requests", "Put paused or blocked tables back into the stream", *REQUEST),
                _command("rewind", "requests", "Take tables back, so that the change log is applied again", *REWIND),
                _command("resync", "requests", "Copy tables again", *REQUEST, YES),
                _command("decode", "decode", "Show what saved messages mean, as change records", *DECODE),
                _command("verify", "requests", "Compare both sides at one position", *REQUEST),
                GroupCommand(
                    name="quarantine",
                    help="Records that could not be applied",
                    subcommands=(
                        _command("list", "quarantine", "Show what waits, since when and why", NAME, TABLE, *ANSWER),
                        _command("show", "quarantine", "Show a record and its bytes", NAME, RECORD, *ANSWER),
                        _command("replay", "quarantine", "Try records again, mended or not", *REPLAY),
                        _command("discard", "quarantine", "Give records up: they are lost by decision", *DISCARD),
                    ),
                ),
                GroupCommand(
                    name="state",
                    help="The state store",
                    subcommands=(
                        _command(
                            "rebuild", "state_rebuild", "Make it anew from targets and staging", ANY_NAME, *ANSWER
                        ),
                    ),
                ),
                GroupCommand(
                    name="sandbox",
                    help="Source systems on loopback, to try things on",
                    subcommands=(_command("salesforce", "sandbox", "Run a Salesforce org until it is stopped", *ORG),),
                ),
            ),
        )
    ]
