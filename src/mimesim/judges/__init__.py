"""Judges: rules and language models that decide one typed question, and their agreement."""
