"""Drops a table with its files."""

from __future__ import annotations

import shutil
from typing import Any

from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation


def drop_table(catalog: Any, name: tuple[str, str], identity: str, location: CatalogLocation) -> None:
    """A server removes the files by itself. In a folder they are removed first: a table without its metadata is what an
    interrupted call has left."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        metadata = catalog.load_table(name).metadata
    except NoSuchTableError:
        return
    except FileNotFoundError:
        catalog.drop_table(name)
        return
    if str(metadata.table_uuid) != identity:
        return
    if not location.warehouse:
        catalog.purge_table(name)
        return
    shutil.rmtree(parse_location(metadata.location).path)
    catalog.drop_table(name)
