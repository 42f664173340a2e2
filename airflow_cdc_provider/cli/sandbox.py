"""``airflow cdc sandbox …``: a source system on loopback to try things on, until it is stopped."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from typing import Any

from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer
from airflow_cdc_provider.core.errors import NotInstalled, Problem


@command
def salesforce(args: argparse.Namespace) -> Answer:
    missing = [name for name in ("cryptography", "fastavro", "grpc", "jwt", "requests") if find_spec(name) is None]
    if missing:
        raise NotInstalled(
            Problem(
                "ENV019",
                "the sandbox org needs packages that are not here",
                found=f"no {', '.join(missing)}",
                do="pip install 'airflow-cdc-provider[sandbox]'",
            )
        )
    from airflow_cdc_provider.sandbox.salesforce.serving import Settings, serve

    settings = Settings(
        args.port, args.pubsub_port, args.size, args.load, args.tls, args.keepalive, args.overflow, follow_input=False
    )
    serve(settings, lambda told: _announce(told, args.output))
    return Answer({"stopped": True}, lines=["the sandbox org is gone, and what it held"])


def _announce(told: dict[str, Any], output: str) -> None:
    """At once, and on the real standard output: the answer comes when the org is gone."""
    lines = [f"{name:16}{value}" for name, value in told.items()]
    match output:
        case "json":
            lines = [json.dumps(told)]
        case "yaml":
            lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in told.items())]
        case "table":
            lines.append("Ctrl-C stops it.")
    print(*lines, sep="\n", file=sys.__stdout__, flush=True)
