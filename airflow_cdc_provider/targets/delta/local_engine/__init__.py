"""Merges of small batches into Delta tables by the process that has the batch, without Spark.

Spark's MERGE plans and compiles for seconds before it looks at the first row. Here the rows that change are looked up
in the table's files by key, marked in deletion vectors, and written anew into one file; one commit names both. A table
or a batch that asks for more than this is left to Spark.
"""
