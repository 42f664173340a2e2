"""What a REST catalog answers to the creation of a table: where it would be, and with which credentials."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.targets.iceberg.table_files import table_files


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
        name = f"cdc_check_{uuid.uuid4().hex}"
        # The library's method for this does not read the part of the answer that has credentials per prefix.
        answer = catalog._create_table((namespace, name), Schema(NestedField(1, "id", LongType())), stage_create=True)
        location = answer.metadata.location
        vended = catalog._resolve_storage_credentials(answer.storage_credentials, location)
        yield location, table_files(catalog._load_file_io({**answer.config, **vended}, location), location)
    finally:
        if is_new:
            # A first copy may be creating its table there at this moment.
            with contextlib.suppress(NamespaceNotEmptyError, NoSuchNamespaceError):
                catalog.drop_namespace(namespace)
