"""An Airflow DAG that tells when a copy is late, from outside the runs of the replicators."""

from airflow_cdc_provider.monitor_dag import build_monitor_dag

dag = build_monitor_dag(__file__)
