"""How agents ask for fields, and when a text states a value."""

from __future__ import annotations

import pytest

from mimesim.scenarios.fields import (
    FIELD_NAMES,
    PHRASED,
    asked_fields,
    date_forms,
    field_name,
    says,
    says_field,
)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("May I have your full name and order number?", ("customer_name", "order_id")),
        ("Could you tell me the order id please", ("order_id",)),
        ("What\u2019s your zip code?", ("zip_code",)),
        ("And the postal code?", ("zip_code",)),
        ("Which e-mail address is on the account?", ("email",)),
        ("Please provide your username and phone number.", ("username", "phone")),
        ("What is your membership level?", ("member_level",)),
        ("I still need your account ID.", ("account_id",)),
        ("How did you pay for it?", ("payment_method",)),
        ("Do you still have the original packaging?", ("packaging",)),
        ("When did you buy it?", ("purchase_date",)),
        ("What is the new phone number?", ("new_phone",)),
        ("What is the new address?", ("new_address",)),
        ("May I have your full shipping address?", ("full_address",)),
        ("Where should the money go?", ("refund_target",)),
        ("Which article would you like to add?", ("extra_item",)),
        ("Your order number is on the receipt, I have it.", ()),
        ("Thanks, the refund is on its way.", ()),
        ("Can I do anything else for you?", ()),
        ("", ()),
    ],
)
def test_a_request_for_fields_is_recognized(text: str, fields: tuple[str, ...]) -> None:
    assert asked_fields(text) == fields


@pytest.mark.parametrize("name", sorted(PHRASED))
def test_the_everyday_name_of_a_field_is_understood(name: str) -> None:
    assert name in asked_fields(f"Could you please tell me your {field_name(name)}?")


def test_every_phrased_field_has_a_name() -> None:
    assert set(FIELD_NAMES) >= PHRASED


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("I know that", "no", False),
        ("no, thanks", "no", True),
        ("order 5512093381.", "5512093381", True),
        ("order 55120 93381", "5512093381", True),
        ("it's 55-1209-3381", "5512093381", True),
        ("order 15512093381", "5512093381", False),
        ("call (201) 555-0134", "(201) 555-0134", True),
        ("call 2015550134", "(201) 555-0134", True),
        ("I\u2019m Ida Bram", "ida bram", True),
        ("golden days", "gold", False),
        ("GOLD member", "gold", True),
        ("12 items", "1", False),
        ("anything", "", False),
    ],
)
def test_values_match_on_token_boundaries(text: str, value: str, said: bool) -> None:
    assert says(text, value) is said


@pytest.mark.parametrize(
    ("text", "field", "value", "said"),
    [
        ("no", "packaging", "no", False),
        ("no, the packaging is gone", "packaging", "no", True),
        ("i don't have the box any more", "packaging", "no", True),
        ("i don't have the box any more", "packaging", "yes", False),
        ("i dont have the box any more", "packaging", "no", True),
        ("i dont have the box any more", "packaging", "yes", False),
        ("yes i still have the packaging", "packaging", "yes", True),
        ("yes. the packaging", "packaging", "yes", False),
        ("just one item", "num_products", "1", True),
        ("one moment", "num_products", "1", False),
        ("both things arrived stained", "num_products", "2", True),
        ("bought on january 4th", "purchase_date", "2026-01-04", True),
        ("bought on the 4th of january", "purchase_date", "2026-01-04", True),
        ("bought 1/4", "purchase_date", "2026-01-04", True),
        ("bought 2026-01-04", "purchase_date", "2026-01-04", True),
        ("bought january 14", "purchase_date", "2026-01-04", False),
    ],
)
def test_small_values_need_a_word_of_their_field(
    text: str, field: str, value: str, said: bool
) -> None:
    assert says_field(text, field, value) is said


def test_what_is_no_date_is_itself() -> None:
    assert date_forms("last week") == ("last week",)
