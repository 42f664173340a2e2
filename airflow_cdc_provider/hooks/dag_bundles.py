"""The folders of Airflow's Dag bundles (``[dag_processor] dag_bundle_config_list``) that are on this host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.configuration import conf
from airflow.sdk.module_loading import import_string  # type: ignore[attr-defined]


@dataclass(frozen=True)
class BundleFolder:
    """``path``: of its newest files. ``missing``: why they cannot be read; empty if they can."""

    name: str
    path: Path
    missing: str = ""


def bundle_folders() -> list[BundleFolder]:
    """Of every configured bundle. None is initialized, which could clone a repository or download a bucket: a bundle is
    as the DAG processor, or a task, has last left it on this host.

    Without Airflow's ``DagBundlesManager``, which writes into the output of a command and imports every provider for
    its examples."""
    configured: Any = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=[])
    return [_folder(bundle) for bundle in configured or ()]


def _folder(bundle: Mapping[str, Any]) -> BundleFolder:
    name = str(bundle["name"])
    try:
        path = Path(import_string(bundle["classpath"])(name=name, **bundle.get("kwargs", {})).path)
    except Exception as error:  # a bundle may be of any class, such as one whose connection is missing
        return BundleFolder(name, Path(), f"it cannot be opened ({type(error).__name__})")
    return BundleFolder(name, path, "" if path.is_dir() else f"it is not on this host ({path})")
