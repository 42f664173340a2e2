"""Events of OpenLineage for the steps that write or compare copies. Airflow sends them if its provider for OpenLineage
is installed and configured; without it, nothing here is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    data_quality_assertions_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.lineage.copies import ColumnLineage, CopyLineage
from airflow_cdc_provider.core.lineage.dataset_names import DatasetName, source_dataset, target_dataset
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.copies import target_of_copy

Change = lifecycle_state_change_dataset.LifecycleStateChange
EQUALS_SOURCE = "equals_source"


def operator_lineage(definition: Definition, secrets: Secrets, copies: Iterable[CopyLineage]) -> Any:
    inputs: dict[DatasetName, Dataset] = {}
    outputs: list[Dataset] = []
    for copy in copies:
        source = source_dataset(definition.source, secrets.source, copy.table)
        name = target_of_copy(copy.copy)
        target = target_dataset(definition.target_named(name), secrets.of_target(name).target, copy.target)
        inputs.setdefault(source, InputDataset(source.namespace, source.name))
        if copy.identical is None:
            outputs.append(_written(source, target, copy))
        else:
            inputs[target] = _compared(target, copy)
    return OperatorLineage(inputs=list(inputs.values()), outputs=outputs)


def _written(source: DatasetName, target: DatasetName, copy: CopyLineage) -> OutputDataset:
    facets: dict[str, Any] = {"schema": _schema(copy), "columnLineage": _column_lineage(source, copy.columns)}
    if copy.replaced:
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            lifecycleStateChange=Change.OVERWRITE
        )
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=copy.rows)
    counted: dict[str, Any] = {} if copy.rows is None else {"outputStatistics": statistics}
    return OutputDataset(target.namespace, target.name, facets=facets, outputFacets=counted)


def _compared(target: DatasetName, copy: CopyLineage) -> InputDataset:
    assertion = data_quality_assertions_dataset.Assertion(assertion=EQUALS_SOURCE, success=bool(copy.identical))
    facet = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(assertions=[assertion])
    return InputDataset(
        target.namespace,
        target.name,
        facets={"schema": _schema(copy)},
        inputFacets={"dataQualityAssertions": facet},
    )


def _schema(copy: CopyLineage) -> schema_dataset.SchemaDatasetFacet:
    fields = [schema_dataset.SchemaDatasetFacetFields(column.name, column.type) for column in copy.columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields)


def _column_lineage(
    source: DatasetName, columns: Sequence[ColumnLineage]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    fields: Mapping[str, Any] = {
        column.name: column_lineage_dataset.Fields(inputFields=[_input_field(source, column)])
        for column in columns
        if column.source
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields=dict(fields))


def _input_field(source: DatasetName, column: ColumnLineage) -> column_lineage_dataset.InputField:
    subtype = "TRANSFORMATION" if column.converted else "IDENTITY"
    transformation = column_lineage_dataset.Transformation(type="DIRECT", subtype=subtype, masking=column.masked)
    return column_lineage_dataset.InputField(source.namespace, source.name, column.source, [transformation])
