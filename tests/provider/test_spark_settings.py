"""Spark settings of a definition cannot load code: numbers, listed words and folders are allowed."""

from __future__ import annotations

import json

import pytest

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.hooks.spark import spark_master
from airflow_cdc_provider.loader.spark_conf import expected_format, refusal_reason

CLASSES = {
    "spark.ui.filters": "x.Evil",
    "spark.ui.enabled": "true",
    "spark.plugins": "x.Evil",
    "spark.plugins.defaultList": "x.Evil",
    "spark.extraListeners": "x.Evil",
    "spark.serializer": "x.Evil",
    "spark.closure.serializer": "x.Evil",
    "spark.shuffle.manager": "x.Evil",
    "spark.shuffle.sort.io.plugin.class": "x.Evil",
    "spark.shuffle.checksum.algorithm": "x.Evil",
    "spark.shuffle.mapStatus.compression.codec": "x.Evil",
    "spark.io.compression.codec": "x.Evil",
    "spark.io.crypto.cipher.transformation": "x.Evil",
    "spark.eventLog.compression.codec": "x.Evil",
    "spark.storage.replication.policy": "x.Evil",
    "spark.storage.replication.topologyMapper": "x.Evil",
    "spark.cleaner.x": "x.Evil",
    "spark.dynamicAllocation.x": "x.Evil",
    "spark.task.resource.gpu.amount": "/bin/evil",
    "spark.executor.resource.gpu.discoveryScript": "/bin/evil",
    "spark.driver.resource.gpu.discoveryScript": "/bin/evil",
    "spark.resources.discoveryPlugin": "x.Evil",
    "spark.jars": "/evil.jar",
    "spark.jars.packages": "evil:evil:1",
    "spark.jars.ivySettings": "/evil.xml",
    "spark.files": "/etc/passwd",
    "spark.archives": "/evil.zip",
    "spark.submit.pyFiles": "/evil.py",
    "spark.submit.deployMode": "cluster",
    "spark.driver.extraJavaOptions": "-javaagent:/evil.jar",
    "spark.executor.extraJavaOptions": "-javaagent:/evil.jar",
    "spark.driver.defaultJavaOptions": "-javaagent:/evil.jar",
    "spark.executor.defaultJavaOptions": "-javaagent:/evil.jar",
    "spark.driver.extraClassPath": "/evil.jar",
    "spark.driver.extraLibraryPath": "/evil",
    "spark.executorEnv.LD_PRELOAD": "/evil.so",
    "spark.pyspark.python": "/bin/evil",
    "spark.pyspark.driver.python": "/bin/evil",
    "spark.python.daemon.module": "evil",
    "spark.python.worker.module": "evil",
    "spark.r.command": "/bin/evil",
    "spark.redaction.regex": "nothing",
    "spark.metrics.conf.driver.sink.evil.class": "x.Evil",
    "spark.metrics.conf": "/evil",
    "spark.kubernetes.driver.podTemplateFile": "/evil.yaml",
    "spark.kubernetes.container.image": "evil",
    "spark.yarn.dist.jars": "/evil.jar",
    "spark.yarn.am.extraJavaOptions": "-javaagent:/evil.jar",
    "spark.security.credentials.x.enabled": "true",
    "spark.hadoop.fs.evil.impl": "x.Evil",
    "spark.hadoop.fs.s3a.impl": "x.Evil",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "x.Evil",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "x.Evil",
    "spark.hadoop.fs.s3a.assumed.role.credentials.provider": "x.Evil",
    "spark.hadoop.fs.s3a.custom.signers": "Evil:x.Evil",
    "spark.hadoop.fs.s3a.s3.client.factory.impl": "x.Evil",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.bucket.lake.create.conditional.enabled": "false",
    "spark.hadoop.fs.s3a.endpoint": "http://evil",
    "spark.hadoop.io.compression.codecs": "x.Evil",
    "spark.hadoop.io.serializations": "x.Evil",
    "spark.hadoop.hadoop.security.group.mapping": "x.Evil",
    "spark.hadoop.hadoop.security.credential.provider.path": "jceks://file/evil",
    "spark.hadoop.mapreduce.outputcommitter.factory.class": "x.Evil",
    "spark.hadoop.parquet.crypto.factory.class": "x.Evil",
    "spark.hadoop.parquet.encryption.kms.client.class": "x.Evil",
    "spark.hadoop.hive.metastore.event.listeners": "x.Evil",
    "spark.hadoop.hive.metastore.uris": "x.Evil",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://h/d?socketFactory=x.Evil",
    "spark.hadoop.javax.jdo.option.ConnectionDriverName": "x.Evil",
    "spark.sql.extensions": "x.Evil",
    "spark.sql.catalog.lake": "x.Evil",
    "spark.sql.queryExecutionListeners": "x.Evil",
    "spark.sql.cache.serializer": "x.Evil",
    "spark.sql.adaptive.customCostEvaluatorClass": "x.Evil",
    "spark.sql.sources.commitProtocolClass": "x.Evil",
    "spark.sql.sources.outputCommitterClass": "x.Evil",
    "spark.sql.parquet.output.committer.class": "x.Evil",
    "spark.sql.parquet.compression.codec": "x.Evil",
    "spark.sql.hive.metastore.jars": "/evil.jar",
    "spark.sql.hive.metastore.jars.path": "/evil.jar",
    "spark.sql.streaming.stateStore.providerClass": "x.Evil",
    "spark.sql.catalogImplementation": "x.Evil",
    "spark.sql.warehouse.dir": "http://evil/",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.adaptive.enabled\n--jars": "true",
    "spark.sql.adaptive.enabled=x": "true",
}
PLAIN = {
    "spark.driver.memory": "2g",
    "spark.executor.instances": "4",
    "spark.sql.files.maxPartitionBytes": "64m",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64MB",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.memory.fraction": "0.5",
    "spark.network.timeout": "120s",
    "spark.speculation": "true",
    "spark.io.compression.codec": "zstd",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.eventLog.enabled": "true",
    "spark.log.level": "INFO",
    "spark.eventLog.dir": "s3a://logs/spark",
    "spark.local.dir": "/mnt/a,/mnt/b",
    "spark.kubernetes.namespace": "cdc",
    "spark.kubernetes.executor.request.cores": "500m",
    "spark.kubernetes.node.selector.pool": "big-memory",
    "spark.yarn.queue": "root.etl",
    "spark.hadoop.fs.s3a.connection.maximum": "200",
    "spark.hadoop.fs.s3a.connection.timeout": "200s",
    "spark.hadoop.hive.metastore.uris": "thrift://metastore:9083,thrift://other:9083",
    "spark.hadoop.hive.metastore.sasl.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "2",
}


@pytest.mark.parametrize("key", CLASSES)
def test_settings_that_load_code_or_override_ours_are_refused(key: str) -> None:
    assert refusal_reason(key) or expected_format(key, CLASSES[key])


@pytest.mark.parametrize("key", PLAIN)
def test_tuning_settings_are_accepted(key: str) -> None:
    assert (refusal_reason(key), expected_format(key, PLAIN[key])) == ("", "")


def test_extras_of_the_spark_connection_are_allow_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_connection(**extra: str) -> None:
        fields = {"conn_type": "spark", "host": "yarn", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(fields))

    set_connection(queue="etl", namespace="cdc")
    assert spark_master("spark_default") == "yarn"
    set_connection(queue="etl", files="/etc/passwd")
    with pytest.raises(CheckFailed, match=r"CON040 .*connection spark_default \| found: files \| allowed: dep"):
        spark_master("spark_default")
