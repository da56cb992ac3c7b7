"""What turn-taking gyms share: the law of steps, parts of a turn, compat flags, agents, the door."""
