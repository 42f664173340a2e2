"""The messages of Spanner's service. Those that are built in large numbers are plain protobuf: Google's wrappers around
them take several times as long."""

from __future__ import annotations

from airflow_cdc_provider.core.registry import load_library

types = load_library("google.cloud.spanner_v1.types", "target", "spanner")

Mutation, KeySet = types.Mutation.pb(), types.KeySet.pb()
