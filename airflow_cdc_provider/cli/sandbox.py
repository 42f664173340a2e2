"""``airflow cdc sandbox …``: runs an emulated source system on loopback until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from typing import Any

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput
from airflow_cdc_provider.core.errors import NotInstalled


@cli_command
def salesforce(args: argparse.Namespace) -> CommandOutput:
    missing = [name for name in ("cryptography", "fastavro", "grpc", "jwt", "requests") if find_spec(name) is None]
    if missing:
        raise NotInstalled.of(
            "ENV019",
            "the sandbox org needs packages that are not installed",
            found=f"missing: {', '.join(missing)}",
            do="pip install 'airflow-cdc-provider[sandbox]'",
        )
    from airflow_cdc_provider.sandbox.salesforce.serving import Settings, serve

    settings = Settings(
        args.port, args.pubsub_port, args.size, args.load, args.tls, args.keepalive, args.overflow, follow_input=False
    )
    serve(settings, lambda info: _announce(info, args.output))
    return CommandOutput({"stopped": True}, lines=["stopped the sandbox org and deleted its data"])


def _announce(info: dict[str, Any], output: str) -> None:
    """Print the addresses to the real standard output at once: the command's own output comes after the org stops."""
    lines = [f"{name:16}{value}" for name, value in info.items()]
    match output:
        case "json":
            lines = [json.dumps(info)]
        case "yaml":
            lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in info.items())]
        case "table":
            lines.append("Press Ctrl-C to stop.")
    print(*lines, sep="\n", file=sys.__stdout__, flush=True)
