"""One package or module per gym; gyms do not import one another."""
