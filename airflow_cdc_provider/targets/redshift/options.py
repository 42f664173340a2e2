"""The keys of a Redshift target in the YAML."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts
from airflow_cdc_provider.core.storage.locations import S3, parse_location

LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def in_lower_case(name: str) -> str:
    """As Redshift folds names."""
    return name.translate(LOWER)


class Json(StrEnum):
    TEXT = "text"
    SUPER = "super"


@dataclass(frozen=True)
class RedshiftOptions:
    """Cluster or workgroup, and database, are those of the connection."""

    location_keys: ClassVar[tuple[str, ...]] = ("connection",)

    schema: str = doc("Schema that holds the tables; Redshift has it in lower case.", form="table")
    stage: str = doc(
        "Folder in S3 for the files that Redshift loads and unloads, in the cluster's region.", form="location"
    )
    stage_connection: str = doc(
        "Airflow connection of type `aws` for `stage`; without it, the role of the workers.", "", form="connection"
    )
    iam_role: str = doc(
        "Role by which Redshift reads and writes `stage`: its ARN, or `default` for the default role of the cluster.",
        "default",
        form="iam_role",
    )
    json: Json = doc(
        "`text` stores JSON documents as VARCHAR, exactly; `super` as SUPER, which drops white space and the digits "
        "that its numbers lack.",
        Json.TEXT,
    )

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        schema = in_lower_case(str(target.options.get("schema", "")))
        return ("schema", schema), ("connection", target.connection)

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Invalid values: key, problem, allowed values."""
        location = parse_location(str(target.options.get("stage", "")))
        if location.scheme != S3:
            yield "stage", "Redshift loads files from S3 only", "s3://bucket/path"
        if any(part.startswith(("_", ".")) for part in location.path.split("/")):
            yield "stage", "Redshift does not see files below such a folder", "no folder that starts with `_` or `.`"
