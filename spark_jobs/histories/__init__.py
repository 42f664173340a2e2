"""Copies that keep a history: what their batches and their full copies write."""
