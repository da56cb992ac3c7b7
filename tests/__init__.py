"""Tests of MimeSim; the folders mirror `src/mimesim`."""
