"""Merges of small batches and copies into Delta tables by the process itself, without Spark.

Spark's MERGE plans and compiles for seconds before it reads the first row. Here the rows to change are looked up in the
table's files by key, marked in deletion vectors, and written into one new file; one commit contains both. Tables and
batches that require more than this are left to Spark.
"""
