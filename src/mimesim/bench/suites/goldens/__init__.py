"""Golden numbers of the suites: what `bench selftest` computes again on this machine."""
