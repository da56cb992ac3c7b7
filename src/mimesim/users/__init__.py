"""Who talks to the agent: model-backed, role-play and scripted users, and the guards on them."""
