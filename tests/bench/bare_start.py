"""A Spark application that does nothing worth mentioning."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("bare").getOrCreate()
print(spark.range(10).count())
spark.stop()
