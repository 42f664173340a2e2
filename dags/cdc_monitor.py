"""An Airflow DAG that notifies of late copies, from outside the runs of the replicators."""

from airflow_cdc_provider.monitor_dag import build_monitor_dag

dag = build_monitor_dag(__file__)
