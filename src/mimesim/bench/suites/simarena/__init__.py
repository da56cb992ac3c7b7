"""SimulatorArena: do ratings in simulated dialogues follow people's, and how alike are the users."""
