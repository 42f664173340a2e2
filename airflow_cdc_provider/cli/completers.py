"""What the shell can complete: names that are known without a connection to a source or a target. An error completes
nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from airflow_cdc_provider.cli.replicators import REPLICATORS
from airflow_cdc_provider.connectors import SAVED, SOURCES
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.hooks.dag_bundles import bundle_folders
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.targets import TARGETS


def replicator_names(args: argparse.Namespace) -> Iterable[str]:
    """Of the Dag bundles on this host: each YAML has the name of its replicator."""
    folders = [one.path / REPLICATORS for one in bundle_folders() if not one.missing]
    return sorted({path.stem for folder in folders for path in folder.glob("*.y*ml")})


def table_names(args: argparse.Namespace) -> Iterable[str]:
    """Of the replicator on the line, as its last run has seen them."""
    try:
        return list(open_state().tables(args.name)) if args.name else []
    except CdcError:
        return []


def source_types(args: argparse.Namespace) -> Iterable[str]:
    return SOURCES


def message_types(args: argparse.Namespace) -> Iterable[str]:
    return SAVED


def target_types(args: argparse.Namespace) -> Iterable[str]:
    return TARGETS
