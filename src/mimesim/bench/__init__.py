"""Judging agents and simulators: the evaluation matrix over stored episodes."""
