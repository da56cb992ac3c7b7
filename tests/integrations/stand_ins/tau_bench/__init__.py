"""Stands where a checkout of tau-bench would: its names and signatures, nothing of its code."""
