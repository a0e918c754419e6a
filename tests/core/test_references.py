"""Business references: what is refused says what is wrong with it, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.references import BusinessReference, check_reference
from holdfast.errors import InvalidArguments


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1, r"to be text, but it is 1\. Write it as text: str\(…\)\."),
        ("x" * 501, r"to be text of 1 to 500 bytes .* Shorten it\."),
        ("", r"to be text of 1 to 500 bytes .*, but it is ''\. Correct it\."),
    ],
)
def test_a_key_or_part_that_is_no_short_text_is_refused_with_its_remedy(value: Any, told: str) -> None:
    with pytest.raises(InvalidArguments, match=f"part 'order' of a business reference {told}"):
        check_reference(BusinessReference("key", {"order": value}))
    with pytest.raises(InvalidArguments, match=f"the key of a business reference {told}"):
        check_reference(BusinessReference(value))
