"""The org as a process of its own: ``python -m airflow_cdc_provider.sandbox.salesforce.serving --help``."""

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
    """Port 0 is any free one. ``load``: records change all the time. ``follow_input``: stop when the input ends."""

    port: int = 0
    pubsub_port: int = 0
    size: str = "small"
    load: bool = False
    tls: bool = False
    keepalive_s: float = 5.0
    overflow: int = Rules().overflow
    follow_input: bool = False


def serve(settings: Settings, announce: Callable[[dict[str, Any]], None]) -> None:
    """Tells ``announce`` what a client needs when it is up; then until SIGTERM, SIGINT or the end of the input.

    Raises CheckFailed (ENV018) where a port is taken.
    """
    with ExitStack() as stack:
        try:
            org = stack.enter_context(_org(settings))
        except (OSError, RuntimeError) as error:
            ports = f"{settings.port}, {settings.pubsub_port}"
            problem = Problem("ENV018", "a port is not free", where=ports, found=str(error), do="choose another one")
            raise CheckFailed(problem) from error
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: over.set()))
        size = SIZES[settings.size]
        if size is not None:
            fill(org, size)
        announce(described(org))
        if settings.follow_input:
            threading.Thread(target=_follow_input, args=(over,), daemon=True).start()
        if settings.load:
            stack.enter_context(Load(org))
        over.wait()


def _org(settings: Settings) -> SalesforceOrg:
    rules = Rules(overflow=settings.overflow)
    return SalesforceOrg(settings.port, settings.pubsub_port, settings.tls, settings.keepalive_s, rules=rules)


def described(org: SalesforceOrg) -> dict[str, Any]:
    """The secrets are those of a throw-away app."""
    found = {
        "instance_url": org.instance_url,
        "pubsub_endpoint": org.pubsub_endpoint,
        "org_id": org.org_id,
        "client_id": org.client_id,
        "client_secret": org.client_secret,
    }
    if org.certificate is not None:
        found |= {"tls_url": org.tls_url, "certificate": str(org.certificate)}
    return found


def _follow_input(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one line of JSON when the org is up."""
    plain = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=plain.port)
    parser.add_argument("--pubsub-port", type=int, default=plain.pubsub_port)
    parser.add_argument("--size", choices=tuple(SIZES), default=plain.size)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--keepalive", dest="keepalive_s", type=float, default=plain.keepalive_s)
    parser.add_argument("--overflow", type=int, default=plain.overflow)
    parser.add_argument("--follow-input", action="store_true")
    settings = Settings(**vars(parser.parse_args(arguments)))
    try:
        serve(settings, lambda told: print(json.dumps(told), flush=True))
    except CheckFailed as refused:
        sys.exit(str(refused))


if __name__ == "__main__":
    main()
