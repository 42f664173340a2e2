"""The keys of a source that reads Datastream events."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True, kw_only=True)
class DatastreamOptions:
    stream: str = doc(
        "The stream that writes the files, as `projects/P/locations/L/streams/S`. It is asked for its state, with the "
        "login of the source's connection: while it is not running, the copies age.",
        "",
        form="stream",
    )
