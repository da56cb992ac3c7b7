"""Stands where a checkout of tau2-bench would: its names and signatures, nothing of its code."""
