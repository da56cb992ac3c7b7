"""Agents by door name: oracle, null, scripted, models, endpoints, Python callables."""
