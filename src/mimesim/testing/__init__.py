"""Checks that people run on their own parts and machines."""
