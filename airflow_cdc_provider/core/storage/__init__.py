"""Locations of staging and targets: folders and buckets."""
