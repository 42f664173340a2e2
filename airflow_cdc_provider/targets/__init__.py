"""Target systems, one folder each. The registry names a target's class and its options without importing them."""

TARGETS: dict[str, str] = {
    "delta": "airflow_cdc_provider.targets.delta.target:DeltaTarget",
}

OPTIONS: dict[str, str] = {
    "delta": "airflow_cdc_provider.targets.delta.options:DeltaOptions",
}
