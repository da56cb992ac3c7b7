"""Other people's harnesses: our gyms in theirs, their environments as gyms; one file for each.

A file imports the library it is for, so importing it needs that library; nothing else here does.
"""

from __future__ import annotations
