"""RealUserSim's paired test (PT3): is the simulated user the same person as the one it imitates?"""
