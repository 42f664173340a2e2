"""The source and the key of hashes that a run was decided under.

Each task reads its connections anew when it starts. They may have been edited since, or a name may lead to another
server.
"""

from __future__ import annotations

from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.core.columns.functions import hash_key, hash_key_id
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.planned_source import other_hash_key, other_source
from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.errors import SourceUnreachable, StepFailed


def open_planned_source(step: Step, secrets: Secrets, registry: RegistryAccess | None = None) -> SourceConnector:
    """Raises SourceUnreachable (SRC010) where it is another one."""
    source = open_source(step.definition, secrets.source, registry)
    require_planned_source(step, source)
    return source


def require_planned_source(step: Step, source: SourceConnector) -> None:
    """Raises SourceUnreachable (SRC010) where the connection leads to another source now."""
    if problem := other_source(step, source.identity()):
        raise SourceUnreachable(problem)


def planned_hash_key(step: Step, secrets: Secrets) -> bytes:
    """The key of ``columns.hash``. Raises StepFailed (CON006) where it is another one."""
    key = hash_key(step.definition, secrets.hash)
    if problem := other_hash_key(step, hash_key_id(key)):
        raise StepFailed(problem)
    return key
