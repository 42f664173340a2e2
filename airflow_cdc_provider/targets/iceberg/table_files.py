"""The files of a table in the store of a REST catalog, as pyiceberg accesses them."""

from __future__ import annotations

import re
import uuid
from typing import Any
from urllib.parse import urlsplit

from airflow_cdc_provider.core.storage.locations import ABFSS
from airflow_cdc_provider.targets.iceberg.azure_files import azure_files

QUERY = re.compile(r"(?<=\w)\?\S+")
"""Of a URL. In Azure it may be a shared access signature."""


def table_files(files: Any, location: str) -> Any:
    """pyiceberg's choice, except in Azure. ``files`` has the properties: of the catalog, and of its answer."""
    return azure_files(files.properties) if urlsplit(location).scheme == ABFSS else files


def why_not_usable(files: Any, location: str) -> str:
    """Writes, reads and deletes a file below ``location``. Returns the error; empty if there is none. An empty object
    with the name of the folder remains, which pyarrow creates."""
    url = f"{location.rstrip('/')}/.cdc-check-{uuid.uuid4().hex}"
    try:
        with files.new_output(url).create() as output:
            output.write(b"check")
        with files.new_input(url).open() as file:
            file.read()
        files.delete(url)
    except (OSError, ValueError) as error:  # pyarrow's, and pyiceberg's for incomplete credentials
        return error_text(error)
    return ""


def error_text(error: Exception) -> str:
    """In one line, without the queries of URLs."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {QUERY.sub('?…', lines[0])[:500]}"
