from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)  # an Airflow DAG, made of replicators/shop.yaml
