"""What the decoder of the binlog needs beside the events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.mysql.positions import BinlogPosition
from airflow_cdc_provider.connectors.sources.mysql.writes import Write


@dataclass(frozen=True)
class DecoderSettings:
    """``tables``: the catalog. ``collations``: id → character set. ``altered``: table → position of its last ALTER
    before the catalog was read; None if not needed, because the binlog has column names and full images.
    ``redefined``: a function from a table to the columns, in lower case, that statements before then redefined.
    ``first_names``: of the tables whose renames are followed, at the beginning. ``limited``: tables of which the
    login may select some columns only. ``confined``: whether a statement that is logged as text changes rows of the
    table only that it names; no if that is unknown. Tables have the names of their copies in all but ``tables``.
    """

    tables: Mapping[str, CatalogTable]
    collations: Mapping[int, str]
    mariadb: bool
    altered: Mapping[str, BinlogPosition] | None = None
    redefined: Callable[[str], Collection[str]] = lambda _table: ()
    first_names: Mapping[str, str] = field(default_factory=dict)
    limited: Collection[str] = ()
    confined: Callable[[Write], bool] = lambda _write: False
