"""A Spark application that only counts ten rows."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("bare").getOrCreate()
print(spark.range(10).count())
spark.stop()
