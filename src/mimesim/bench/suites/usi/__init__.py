"""User-sim index: 19 features of how users write, their distance from people, and calibration."""
