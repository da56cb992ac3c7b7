"""Whole experiments: stages that resume, run side by side, and end in one record."""
