"""`python -m mimesim` is the command line."""

from __future__ import annotations

from mimesim.cli.main import run

if __name__ == "__main__":
    run()
