"""What a REST catalog answers to the creation of a table: where it would be, and with which credentials."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.core.storage.locations import ABFSS
from airflow_cdc_provider.targets.iceberg.table_files import table_files

NAME = "cdc_check"


@contextlib.contextmanager
def uncommitted_table(catalog: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    """Location and files of a table that is staged, as the first copy stages one, and never committed. A namespace
    that is created for it is removed again."""
    from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    is_new = not catalog.namespace_exists(namespace)
    if is_new:
        catalog.create_namespace_if_not_exists(namespace)
    try:
        # The library's method for this ignores credentials per prefix. In Azure, Iceberg in Spark ignores them, too.
        answer = catalog._create_table((namespace, NAME), Schema(NestedField(1, "id", LongType())), stage_create=True)
        location = answer.metadata.location
        per_prefix = [] if location.startswith(ABFSS) else answer.storage_credentials
        vended = catalog._resolve_storage_credentials(per_prefix, location)
        yield location, table_files(catalog._load_file_io({**answer.config, **vended}, location), location)
    finally:
        if is_new:
            # A first copy may be creating its table there at this moment.
            with contextlib.suppress(NamespaceNotEmptyError, NoSuchNamespaceError):
                catalog.drop_namespace(namespace)
