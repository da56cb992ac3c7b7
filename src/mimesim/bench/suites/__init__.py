"""Benchmarks of users: conversations in, verdicts between, score records out."""
