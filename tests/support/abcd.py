"""A small invented folder in the shape of ABCD's files: three subflows, their limits, a corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

RETURN = {
    "instructions": ["The boots are stained.", "Be kind and fill out the survey at the end."],
    "actions": [
        {"type": "interaction", "button": "Pull up Account", "text": "Ask who it is", "subtext": []},
        {"type": "kb query", "button": "Validate Purchase", "text": "Check it", "subtext": ["Three things"]},
        {"type": "faq/policy", "button": "Membership Privileges", "text": "Look at the level", "subtext": ["Whoever cannot return is told so"]},
        {"type": "communication", "button": "N/A", "text": "Tell them", "subtext": []},
    ],
}  # fmt: skip
PASSWORD = {
    "instructions": ["Say sorry if it fails, and remember to mark the conversation as done in the survey."],
    "actions": [
        {"type": "interaction", "button": "Pull up Account", "text": "Ask who it is", "subtext": []},
        {"type": "communication", "button": "N/A", "text": "You cannot get their password back", "subtext": []},
    ],
}  # fmt: skip
MISSING = {
    "instructions": [],
    "actions": [
        {"type": "interaction", "button": "Pull up Account", "text": "Ask who it is", "subtext": []},
        {"type": "communication", "button": "N/A", "text": "After less than a week they wait", "subtext": []},
    ],
}  # fmt: skip
GUIDELINES = {
    "Product Defect": {"description": "things that broke", "subflows": {"Return Due to Stain": RETURN}},
    "Account Access": {"description": "locked out", "subflows": {"Recover Password": PASSWORD}},
    "Shipping Issue": {"description": "parcels", "subflows": {"Missing Item": MISSING}},
}  # fmt: skip
KB = {
    "return_stain": ["pull-up-account", "validate-purchase", "membership", "enter-details", "update-order"],
    "recover_password": ["pull-up-account", "enter-details", "make-password"],
    "missing": ["pull-up-account", "validate-purchase", "record-reason", "update-order", "make-purchase"],
    "boots": ["search-faq", "search-boots", "select-faq"],
}  # fmt: skip
ONTOLOGY = {
    "values": {
        "enumerable": {
            "customer_name": ["Ada Quill", "Bo Marsh"],
            "product": ["alpine boots", "alpine shirt", "brook jeans", "brook jacket"],
            "membership_level": ["silver", "guest", "gold", "bronze"],
            "payment_method": ["credit card", "debit card", "paypal"],
            "refund_target": ["gift card", "paper check"],
            "shipping_option": ["delivered", "in transit", "order received", "out for delivery"],
            "security_answer": ["Quince", "Larkin"],
        }
    }
}
POOLS = {
    "product_defect": {
        "<username>": ["aquill17", "(adaq204)", "bmarsh3", "nobody1", "QX"],
        "<zip_code>": ["12345", "1234", "98765"],
        "<phone>": ["(201) 555-0101", "555"],
        "<street_address>": ["1234 kennel st", "77 short"],
    },
    "account_access": {"<pin_number>": ["123456", "12345"]},
}


def scenario(subflow: str = "return_stain", **changes: Any) -> dict[str, Any]:
    """Return a whole scenario; None as a value takes a key out."""
    personal = {"customer_name": "ada quill", "email": "aquill17@email.com", "member_level": "silver", "phone": "(201) 555-0101", "username": "aquill17"}  # fmt: skip
    order = {"street_address": "1234 kennel st", "full_address": "1234 kennel st  boise, id 12345", "city": "boise", "state": "id", "zip_code": "12345", "num_products": "1", "order_id": "1234567890", "packaging": "yes", "payment_method": "credit card", "purchase_date": "2020-01-15", "products": "[{'brand': 'alpine', 'image_url': 'x.jpeg'}]"}  # fmt: skip
    for part in (personal, order):
        for key in set(changes) & set(part):
            part[key] = changes[key]
    return {
        "personal": {k: v for k, v in personal.items() if v is not None},
        "order": {k: v for k, v in order.items() if v is not None},
        "product": {"names": ["alpine_boots"], "amounts": [64]},
        "flow": "product_defect",
        "subflow": subflow,
    }


CORPUS = {
    "train": [
        {"convo_id": 1, "scenario": scenario(), "original": [["customer", "hi"]]},
        {"convo_id": 2, "scenario": scenario(email=None), "original": []},
        {"convo_id": 3, "scenario": scenario("timing_4"), "original": []},
    ],
    "dev": [{"convo_id": 4, "scenario": scenario(member_level="gold"), "original": []}],
    "test": [{"convo_id": 5, "scenario": scenario(purchase_date="someday"), "original": []}],
}


def write_folder(folder: Path, **replaced: Any) -> Path:
    """Write the files; `guidelines`, `kb`, `ontology`, `pools`, `corpus` may be replaced, None = no file."""
    files = {
        "guidelines.json": replaced.get("guidelines", GUIDELINES),
        "kb.json": replaced.get("kb", KB),
        "ontology.json": replaced.get("ontology", ONTOLOGY),
        "value_pools.json": replaced.get("pools", POOLS),
        "abcd_v1.1.json": replaced.get("corpus", CORPUS),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        if value is not None:
            (folder / name).write_text(json.dumps(value), encoding="utf-8")
    with gzip.open(folder / "abcd_v1.1.json.gz", "wb") as stream:
        stream.write(json.dumps(files["abcd_v1.1.json"]).encode())
    return folder
