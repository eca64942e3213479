"""The script of `docs/billing.md` works the hash of a document out from its JSON file."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from document_examples import credit_note, draft, invoice, many_lines

from billing.documents.formats import Format, written
from billing.domain.invoicing.document import CreditDocument, Document, read_document

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "billing.md").read_text()
GOLDEN = sorted((ROOT / "tests" / "golden" / "invoices").glob("*/document.json"))
DOCUMENTS = [
    invoice(),
    invoice(many_lines(20), notes=('a "note"', "of \\ and\ttabs, ü, 发票")),
    credit_note(),
    *(read_document(each.read_bytes()) for each in GOLDEN),
]


def told(tmp_path: Path, content: bytes) -> str:
    """What the script says of a file."""
    (script,) = re.findall(r"```python\n(import hashlib.+?)```", PAGE, re.DOTALL)
    file = tmp_path / "file.json"
    file.write_bytes(content)
    ran = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_hash_is_worked_out_from_the_file(
    tmp_path: Path, document: Document | CreditDocument
) -> None:
    """Of every currency, of credit notes, and whatever is written in them."""
    assert told(tmp_path, written(document, Format.JSON)) == "the same"


@pytest.mark.parametrize("document", [invoice(), credit_note()])
def test_a_file_that_was_changed_is_another(
    tmp_path: Path, document: Document | CreditDocument
) -> None:
    """In any of its facts."""
    shown = json.loads(written(document, Format.JSON))
    changes = [
        {"total": "0.01"},
        {"number": "INV-2026-000001"},
        {"lines": shown["lines"][1:]},
        {"lines": [{**shown["lines"][0], "amount": "0.01"}, *shown["lines"][1:]]},
        {"taxes": []},
        {"customer": {**shown["customer"], "name": "Another"}},
        {"issued_on": "2026-01-01"},
    ]
    assert told(tmp_path, json.dumps(shown).encode()) == "the same"
    for change in changes:
        assert told(tmp_path, json.dumps({**shown, **change}).encode()) == "another", change


def test_a_draft_has_none() -> None:
    """It is made anew at each look."""
    assert json.loads(written(draft(), Format.JSON))["content_hash"] is None
