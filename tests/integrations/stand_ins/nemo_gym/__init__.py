"""Stands where NeMo-Gym would: its names and signatures, nothing of its code."""
