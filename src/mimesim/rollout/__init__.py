"""Running conversations: limits, the one driver, the engine, the run folder, events."""
