"""One replicator with its source, targets, change log and state store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.core.columns.functions import hash_key
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.staging.run_files import RunFiles, find_run, own_run
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.targets.registry import Targets, open_targets

LogInfo = Callable[[str], None]
"""Writes one line to the task log."""


@dataclass(frozen=True)
class Replicator:
    """No member connects to its system before its first call. ``hash_key``: the key of hashed columns."""

    definition: Definition
    source: SourceConnector
    targets: Targets
    log: ChangeLog
    state: StateStore
    hash_key: bytes = field(default=b"", repr=False)

    @property
    def name(self) -> str:
        return self.definition.name

    def run(self, run_id: str) -> RunFiles:
        """A run that was opened."""
        return find_run(self.log.store, self.state.owner(), run_id)

    def new_run(self, run_id: str) -> RunFiles:
        """A run that is being opened."""
        return own_run(self.log.store, self.state.owner(), run_id)


def open_replicator(definition: Definition, secrets: Secrets, state: StateStore) -> Replicator:
    log = open_log(definition, secrets.staging)
    source = open_source(definition, secrets.source, RegistryAccess(secrets.registry, log))
    key = hash_key(definition, secrets.hash)
    return Replicator(definition, source, open_targets(definition, secrets, log), log, state, key)
