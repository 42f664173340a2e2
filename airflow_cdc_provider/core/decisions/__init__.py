"""The decision of a run: facts, decision, plan and steps."""
