"""What a run does: the facts, the decision, the plan and the steps that follow from it."""
