"""Tasks: environments whose policy is the user model, one small file per task."""
