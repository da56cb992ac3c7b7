"""Scenario packs that ship with MimeSim: manuals and value pools as data files."""
