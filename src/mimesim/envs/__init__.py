"""The world opposite the agent: the gym contract, typed actions, gyms, task files, agents."""
