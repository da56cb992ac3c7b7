"""ABCD as a manual: the user's own copy of its guidelines, procedures, ontology and value pools.

Nothing of the corpus is shipped. `tables.toml` holds what is ours: which guideline belongs to which
subflow, which fields it asks for, in what cases its limits stand.
"""
