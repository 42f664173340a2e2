"""The commands of ``airflow cdc``. Every ``airflow`` call imports this module, so it does not import their code."""

from __future__ import annotations

import argparse

from airflow.cli.cli_config import ARG_OUTPUT, ActionCommand, Arg, CLICommand, GroupCommand, lazy_load_command

from airflow_cdc_provider.cli.arguments import ArgWithEpilog, StrictArg, positive_number
from airflow_cdc_provider.connectors import SAVED

FILES = StrictArg("files", help="YAML files of replicators", nargs="+", metavar="FILE")
NAME = StrictArg(
    "name", help="The name of the replicator, or its YAML file", metavar="NAME", completer="replicator_names"
)
ANY_NAME = StrictArg(
    "name",
    help="The name of a replicator, or its YAML file (default: all replicators)",
    nargs="?",
    metavar="NAME",
    completer="replicator_names",
)
TABLE = StrictArg(
    "--table",
    help="A source table; may be repeated (default: all tables)",
    action="append",
    default=[],
    completer="table_names",
)
# Airflow keeps its log lines off stdout for commands that have an argument "output".
OUTPUT = StrictArg(*ARG_OUTPUT.flags, **ARG_OUTPUT.kwargs)
JSON = StrictArg(
    "--json",
    help="Same as --output json",
    dest="output",
    action="store_const",
    const="json",
    default=argparse.SUPPRESS,
)
OUTPUT_ARGS = (OUTPUT, JSON)
LIMIT = StrictArg("--limit", help="The number of entries, newest first (default: 50)", type=positive_number, default=50)
NOW = StrictArg("--now", help="Trigger a DAG run that carries out the command", action="store_true")
WAIT = StrictArg("--wait", help="Wait until the command has finished", action="store_true")
KEY = StrictArg("--key", help="Idempotency key: a repeated command with the same key has no effect")
REASON = StrictArg("--reason", help="The reason, shown in the status and in the audit log", default="")
ALLOW_DELETES = StrictArg(
    "--yes", help="The name of the replicator: the new copy may delete more rows than resync.max_delete", metavar="NAME"
)
REPAIR = StrictArg("--repair", help="Read rows that differ from the source again", action="store_true")

DROP_COPIES = StrictArg("--drop-copies", help="Drop the copies in the target, too", action="store_true")
DRY_RUN = StrictArg("--dry-run", help="Show what would be removed, and remove nothing", action="store_true")
YES_NAME = StrictArg("--yes", help="The name of the replicator, instead of typing it", metavar="NAME")
RENAMED = StrictArg("new_name", help="The new name", metavar="NEW")
MOVED_STAGING = StrictArg("--staging", help="The new location of the change log", required=True, metavar="URL")
MOVED_CONNECTION = StrictArg(
    "--connection", help="The Airflow connection of the new location, for an object store", default="", metavar="ID"
)

REWIND_TO = StrictArg(
    "--to", help="A window number, or a time in ISO format (default zone: UTC)", required=True, metavar="WINDOW|TIME"
)

PORT = StrictArg("--port", help="The port of the REST API (default: a free port)", type=int, default=0)
PUBSUB_PORT = StrictArg("--pubsub-port", help="The port of the Pub/Sub API (default: a free port)", type=int, default=0)
SIZE = StrictArg(
    "--size", help="The initial data of the org (default: small)", choices=("empty", "small", "demo"), default="small"
)
LOAD = StrictArg("--load", help="Change records continuously", action="store_true")
TLS = StrictArg("--tls", help="Also serve HTTPS, with a generated certificate", action="store_true")
KEEPALIVE = StrictArg(
    "--keepalive", help="Seconds between keepalive messages on an idle stream (default: 5)", type=float, default=5.0
)
OVERFLOW = StrictArg(
    "--overflow", help="Number of changes at which a transaction overflows (default: 100000)", type=int, default=100_000
)

QUESTION = StrictArg("--question", help="The id of a question, as the list shows it", default="", metavar="ID")
ANSWER = StrictArg(
    "--answer",
    help="The answer (default: list the open questions)",
    choices=("apply", "rename", "ignore", "resync", "repair", "leave"),
)

RECORD = StrictArg("id", help="The id of a record, as `quarantine list` shows it", metavar="ID")
RECORDS = StrictArg("ids", help="The ids of records (default: all records of --table)", nargs="*", metavar="ID")
VALUES = StrictArg(
    "--set",
    help="A corrected value, as text; may be repeated",
    action="append",
    default=[],
    metavar="COLUMN=VALUE",
)
NULLS = StrictArg(
    "--set-null",
    help="A column whose corrected value is NULL; may be repeated",
    action="append",
    default=[],
    metavar="COLUMN",
)
SOURCE_TYPE = ArgWithEpilog(
    "--source-type",
    help=f"The source type of the messages. Allowed values: {', '.join(sorted(SAVED))}",
    required=True,
    metavar="TYPE",
    completer="message_types",
    epilog_module="airflow_cdc_provider.cli.decode_help",
)
SCHEMA = StrictArg("--schema", help="A JSON file with the table schemas, for messages without a schema", metavar="FILE")
OPTION = StrictArg(
    "--option", help="An option of the source type; may be repeated", action="append", default=[], metavar="KEY=VALUE"
)
REGISTRY = StrictArg(
    "--registry",
    help="For messages with schema ids: the Airflow connection of a schema registry, or a folder with a file per id",
    metavar="CONNECTION|FOLDER",
)
MESSAGES = StrictArg(
    "files",
    help="Files of saved messages (one per line, or Avro or Parquet), or folders of such files",
    nargs="+",
    metavar="FILE",
)
DECODE_OUTPUT = StrictArg(
    *ARG_OUTPUT.flags,
    **{
        **ARG_OUTPUT.kwargs,
        "default": "",
        "help": "Output format. Allowed values: json, yaml, plain, table (default: JSON lines, one per record)",
    },
)
TABLE_NAME = StrictArg("table", help="A source table", metavar="TABLE", completer="table_names")

NEW_SOURCE_TYPE = StrictArg(
    "--source-type",
    help="The source type of the new replicator",
    required=True,
    metavar="TYPE",
    completer="source_types",
)
CONNECTION = StrictArg("--connection", help="The Airflow connection of the source", metavar="ID")
NEW_NAME = StrictArg("--name", help="The name of the replicator (default: from the connection)", default="")
SOURCE_OPTION = StrictArg(
    "--option",
    help="A key of `source`, as in the YAML; may be repeated",
    action="append",
    default=[],
    metavar="KEY=VALUE",
)
PATTERNS = StrictArg(
    "--tables", help="Tables, or patterns with * and ? (default: all tables)", nargs="+", default=[], metavar="PATTERN"
)
TARGET_TYPE = StrictArg(
    "--target-type",
    help="The target type (default: delta)",
    default="delta",
    metavar="TYPE",
    completer="target_types",
)
TARGET_CONNECTION = StrictArg("--target-connection", help="The Airflow connection of the target", metavar="ID")
LOCATION = StrictArg("--location", help="The folder or URL of the target's tables")
TARGET_OPTION = StrictArg(
    "--target-option",
    help="A key of `target`, as in the YAML; may be repeated",
    action="append",
    default=[],
    metavar="KEY=VALUE",
)
STAGING = StrictArg("--staging", help="The folder or URL of the change log")
NEW_FILE = StrictArg("--file", help="Write the YAML to this file (default: stdout)", metavar="FILE")
OVERWRITE = StrictArg("--overwrite", help="Overwrite an existing file", action="store_true")
YAML_OUTPUT = StrictArg(
    *ARG_OUTPUT.flags,
    **{
        **ARG_OUTPUT.kwargs,
        "default": "",
        "help": "Output format. Allowed values: json, yaml, plain, table (default: the YAML of the replicator)",
    },
)
DISCARD_REASON = StrictArg("--reason", help="The reason, recorded in the audit log", required=True)

INIT_ARGS = (
    NEW_SOURCE_TYPE,
    CONNECTION,
    NEW_NAME,
    SOURCE_OPTION,
    PATTERNS,
    TARGET_TYPE,
    TARGET_CONNECTION,
    LOCATION,
    TARGET_OPTION,
    STAGING,
    NEW_FILE,
    OVERWRITE,
    YAML_OUTPUT,
    JSON,
)
DECODE_ARGS = (SOURCE_TYPE, SCHEMA, REGISTRY, OPTION, MESSAGES, DECODE_OUTPUT, JSON)
COMMAND_ARGS = (NAME, TABLE, NOW, WAIT, KEY, REASON, *OUTPUT_ARGS)
VERIFY_ARGS = (*COMMAND_ARGS, REPAIR)
DECIDE_ARGS = (NAME, TABLE, QUESTION, ANSWER, REASON, NOW, *OUTPUT_ARGS)
REWIND_ARGS = (NAME, TABLE, REWIND_TO, YES_NAME, NOW, WAIT, KEY, REASON, *OUTPUT_ARGS)
REPLAY_ARGS = (NAME, RECORDS, TABLE, VALUES, NULLS, NOW, WAIT, KEY, REASON, *OUTPUT_ARGS)
DISCARD_ARGS = (NAME, RECORDS, TABLE, DISCARD_REASON, YES_NAME, NOW, WAIT, KEY, *OUTPUT_ARGS)
SANDBOX_ARGS = (PORT, PUBSUB_PORT, SIZE, LOAD, TLS, KEEPALIVE, OVERFLOW, *OUTPUT_ARGS)


def _command(name: str, module: str, help: str, *args: Arg) -> ActionCommand:
    function = lazy_load_command(f"airflow_cdc_provider.cli.{module}.{name}")
    return ActionCommand(name=name, help=help, func=function, args=args)


def get_cli_commands() -> list[CLICommand]:
    return [
        GroupCommand(
            name="cdc",
            help="Manage change data capture replicators",
            subcommands=(
                _command("init", "init", "Write the YAML of a replicator for the tables of a source", *INIT_ARGS),
                _command("tables", "assess", "Show which tables a replicator selects", NAME, *OUTPUT_ARGS),
                _command("describe", "assess", "Show the columns of a source table", NAME, TABLE_NAME, *OUTPUT_ARGS),
                _command(
                    "assess",
                    "assess",
                    "Show which tables and columns can be copied, how, and how long that takes",
                    NAME,
                    TABLE,
                    *OUTPUT_ARGS,
                ),
                _command("validate", "validate", "Validate YAML files and show all errors", FILES, *OUTPUT_ARGS),
                _command("plan", "plan", "Show what the next run would do, per table", NAME, *OUTPUT_ARGS),
                _command(
                    "check",
                    "check",
                    "Check source, target, staging and Spark, and show all problems",
                    NAME,
                    *OUTPUT_ARGS,
                ),
                _command("status", "status", "Show states, cursors, row counts and lag", ANY_NAME, *OUTPUT_ARGS),
                _command("metrics", "metrics", "Show lag, sizes and states as metrics", ANY_NAME, *OUTPUT_ARGS),
                _command("audit", "audit", "Show who did what to a replicator", NAME, LIMIT, *OUTPUT_ARGS),
                _command("pause", "table_commands", "Pause tables", *COMMAND_ARGS),
                _command("resume", "table_commands", "Resume paused or blocked tables", *COMMAND_ARGS),
                _command(
                    "rewind",
                    "table_commands",
                    "Restore an earlier state of tables; the next run applies the change log from there",
                    *REWIND_ARGS,
                ),
                _command("resync", "table_commands", "Copy tables again", *COMMAND_ARGS, ALLOW_DELETES),
                _command("decide", "decide", "List open questions, or answer one", *DECIDE_ARGS),
                _command("decode", "decode", "Decode saved messages into change records", *DECODE_ARGS),
                _command("verify", "table_commands", "Compare source and target at one position", *VERIFY_ARGS),
                _command("differences", "differences", "List what comparisons found", NAME, TABLE, *OUTPUT_ARGS),
                _command(
                    "delete",
                    "leaving",
                    "Delete a replicator: what it has at its source, in staging and in its target",
                    NAME,
                    DROP_COPIES,
                    DRY_RUN,
                    YES_NAME,
                    *OUTPUT_ARGS,
                ),
                _command("recreate", "leaving", "Allow runs of a deleted replicator again", NAME, *OUTPUT_ARGS),
                _command("rename", "leaving", "Rename a replicator; its copies stay", NAME, RENAMED, *OUTPUT_ARGS),
                _command(
                    "move",
                    "leaving",
                    "Move the change log of a replicator; its copies stay",
                    NAME,
                    MOVED_STAGING,
                    MOVED_CONNECTION,
                    *OUTPUT_ARGS,
                ),
                GroupCommand(
                    name="quarantine",
                    help="Manage records that could not be applied",
                    subcommands=(
                        _command("list", "quarantine", "List records in quarantine", NAME, TABLE, *OUTPUT_ARGS),
                        _command("show", "quarantine", "Show a record and its bytes", NAME, RECORD, *OUTPUT_ARGS),
                        _command("replay", "quarantine", "Apply records again, with corrected values", *REPLAY_ARGS),
                        _command("discard", "quarantine", "Discard records: their changes are lost", *DISCARD_ARGS),
                    ),
                ),
                GroupCommand(
                    name="state",
                    help="Manage the state store",
                    subcommands=(
                        _command(
                            "rebuild",
                            "state_rebuild",
                            "Rebuild the state store from targets and staging",
                            ANY_NAME,
                            *OUTPUT_ARGS,
                        ),
                    ),
                ),
                GroupCommand(
                    name="sandbox",
                    help="Run emulated source systems on loopback",
                    subcommands=(
                        _command("salesforce", "sandbox", "Run an emulated Salesforce org until Ctrl-C", *SANDBOX_ARGS),
                    ),
                ),
            ),
        )
    ]
