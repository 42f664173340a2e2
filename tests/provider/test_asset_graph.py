"""What Airflow's graph of assets shows of a DAG that declares its sources as inlets: the reason why ours do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.api_fastapi.core_api.services.ui.dependencies import get_data_dependencies
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.asset import AssetAliasModel, AssetModel
from airflow.models.dagbundle import DagBundleModel
from airflow.utils.session import create_session
from sqlalchemy import select

DAG = """\
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetAlias

with DAG("{name}") as dag:
    outlets = [{outlet}]
    EmptyOperator(task_id="merge", inlets=[Asset("x-postgres://shop_db/public/{name}")], outlets=outlets)
"""


def edges(folder: Path, name: str, outlet: str) -> set[tuple[str, str]]:
    """The graph of the source of a DAG, after a run has reported its copy."""
    (folder / f"{name}.py").write_text(DAG.format(name=name, outlet=outlet))
    with create_session() as session:
        session.merge(DagBundleModel(name="graphs"))
    bag = DagBag(str(folder / f"{name}.py"), bundle_path=folder, bundle_name="graphs")
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "graphs", None)
    with create_session() as session:
        copy = session.scalar(select(AssetModel).where(AssetModel.name == f"copy {name}"))
        if copy is None:
            alias = session.scalar(select(AssetAliasModel).where(AssetAliasModel.name == f"cdc/{name}"))
            assert alias is not None
            alias.assets.append(AssetModel(name=f"copy {name}", uri=f"x-lake://{name}"))
        source = session.scalar(select(AssetModel).where(AssetModel.uri == f"x-postgres://shop_db/public/{name}"))
        assert source is not None
        session.flush()
        found = get_data_dependencies(source.id, session)
        labels = {node["id"]: node["label"] for node in found["nodes"]}
        return {(labels[edge["source_id"]], labels[edge["target_id"]]) for edge in found["edges"]}


@pytest.mark.usefixtures("metadata_database")
def test_a_source_leads_to_a_copy_only_where_the_task_declares_the_copy_itself(tmp_path: Path) -> None:
    """A declared outlet has an event after every success, also of tables that did not change."""
    aliased = edges(tmp_path, "orders", 'AssetAlias("cdc/orders")')
    assert aliased == {("x-postgres://shop_db/public/orders", "orders.merge")}
    declared = edges(tmp_path, "lines", 'Asset("copy lines", uri="x-lake://lines")')
    assert declared == {("x-postgres://shop_db/public/lines", "lines.merge"), ("lines.merge", "copy lines")}
