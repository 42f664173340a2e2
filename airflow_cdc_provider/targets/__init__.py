"""Target systems, one folder each. The registry names a target's class, its options, and the function that
names tables, without importing them."""

TARGETS: dict[str, str] = {
    "delta": "airflow_cdc_provider.targets.delta.target:DeltaTarget",
}

OPTIONS: dict[str, str] = {
    "delta": "airflow_cdc_provider.targets.delta.options:DeltaOptions",
}

NAMING: dict[str, str] = {
    "delta": "airflow_cdc_provider.targets.naming:default_name",
}
