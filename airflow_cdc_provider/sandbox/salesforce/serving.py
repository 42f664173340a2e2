"""The org as a separate process: ``python -m airflow_cdc_provider.sandbox.salesforce.serving --help``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.demo import DEMO, SMALL, Load, fill
from airflow_cdc_provider.sandbox.salesforce.org import SalesforceOrg

SIZES = {"empty": None, "small": SMALL, "demo": DEMO}


@dataclass(frozen=True)
class Settings:
    """Port 0: any free one. ``load``: with a load generator. ``follow_input``: stop at the end of the input."""

    port: int = 0
    pubsub_port: int = 0
    size: str = "small"
    load: bool = False
    tls: bool = False
    keepalive_s: float = 5.0
    overflow: int = Rules().overflow
    follow_input: bool = False


def serve(settings: Settings, announce: Callable[[dict[str, Any]], None]) -> None:
    """Call ``announce`` with the addresses of the org, then serve until SIGTERM, SIGINT or the end of the input.

    Raises CheckFailed (ENV018) if a port is not free.
    """
    with ExitStack() as stack:
        try:
            org = stack.enter_context(_org(settings))
        except (OSError, RuntimeError) as error:
            ports = f"{settings.port}, {settings.pubsub_port}"
            problem = Problem("ENV018", "a port is not free", where=ports, found=str(error), do="choose another one")
            raise CheckFailed(problem) from error
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: stopped.set()))
        size = SIZES[settings.size]
        if size is not None:
            fill(org, size)
        announce(addresses(org))
        if settings.follow_input:
            threading.Thread(target=_follow_input, args=(stopped,), daemon=True).start()
        if settings.load:
            stack.enter_context(Load(org))
        stopped.wait()


def _org(settings: Settings) -> SalesforceOrg:
    rules = Rules(overflow=settings.overflow)
    return SalesforceOrg(settings.port, settings.pubsub_port, settings.tls, settings.keepalive_s, rules=rules)


def addresses(org: SalesforceOrg) -> dict[str, Any]:
    """The addresses and the credentials, which are valid for this org only."""
    info = {
        "instance_url": org.instance_url,
        "pubsub_endpoint": org.pubsub_endpoint,
        "org_id": org.org_id,
        "client_id": org.client_id,
        "client_secret": org.client_secret,
    }
    if org.certificate is not None:
        info |= {"tls_url": org.tls_url, "certificate": str(org.certificate)}
    return info


def _follow_input(stopped: threading.Event) -> None:
    sys.stdin.read()
    stopped.set()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line of JSON when the org is up."""
    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=defaults.port)
    parser.add_argument("--pubsub-port", type=int, default=defaults.pubsub_port)
    parser.add_argument("--size", choices=tuple(SIZES), default=defaults.size)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--keepalive", dest="keepalive_s", type=float, default=defaults.keepalive_s)
    parser.add_argument("--overflow", type=int, default=defaults.overflow)
    parser.add_argument("--follow-input", action="store_true")
    settings = Settings(**vars(parser.parse_args(arguments)))
    try:
        serve(settings, lambda info: print(json.dumps(info), flush=True))
    except CheckFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
