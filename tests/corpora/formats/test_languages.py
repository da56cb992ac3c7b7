"""Names, codes and locales of languages."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.formats.languages import language_code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("English", "en"),
        ("chinese", "zh"),
        ("uk-UA", "uk"),
        ("pt_BR", "pt"),
        (" de ", "de"),
        ("Klingon", ""),
        ("unknown", ""),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_codes(name: Any, code: str) -> None:
    assert language_code(name) == code
