import hashlib
import json
from datetime import date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from invoice_examples import VAT, a_document, a_group
from msgspec.structs import replace
from price_examples import a_price

from billing.domain.invoicing.credit import CreditLine, credit
from billing.domain.invoicing.document import (
    CreditDocument,
    canonical_bytes,
    content_hash,
    due_on,
    read_credit_document,
    read_document,
)
from billing.domain.invoicing.numbering import date_of_issue, number_of, series_of

FIRST = a_group(uncached_prompt_tokens=1_500_000, requests=3)
SECOND = a_group(output_tokens=7, request_class="batch", requests=1)
DONG = a_price(currency="VND", input_pico=25 * 10**9)


def credited() -> CreditDocument:
    of = a_document(FIRST)
    assert of.number
    assert of.issued_on
    assert of.issued_at
    assert of.seller
    note = credit(of.lines, of.totals, [], [CreditLine(position=1, amount_minor=5)], "r")
    return CreditDocument(
        credit_note_id="c",
        number="CN-2026-000001",
        invoice_id=of.invoice_id,
        invoice_number=of.number,
        invoice_issued_on=of.issued_on,
        currency=of.currency,
        issued_at=of.issued_at,
        issued_on=of.issued_on,
        seller=of.seller,
        customer=of.customer,
        period=of.period,
        lines=of.lines,
        note=note,
    )


def test_inv_7_the_same_rows_make_the_same_bytes() -> None:
    """In whatever order they come; another token makes others."""
    content = canonical_bytes(a_document(FIRST, SECOND))
    assert canonical_bytes(a_document(SECOND, FIRST)) == content
    more = replace(SECOND, output_tokens=8, cost_pico=SECOND.cost_pico + 4_000_000)
    assert content_hash(a_document(FIRST, more)) != content_hash(a_document(FIRST, SECOND))
    assert content_hash(a_document(FIRST, SECOND)) == hashlib.sha256(content).hexdigest()


def test_what_was_written_down_is_read_again() -> None:
    """To the same bytes: names, and amounts beyond 64 bits, which dong reach."""
    much = a_document(a_group(DONG, uncached_prompt_tokens=10**12), currency="VND", tax=VAT)
    assert much.lines[0].amount_pico > 2**64
    for document in (much, a_document(FIRST, SECOND), a_document()):
        content = canonical_bytes(document)
        assert read_document(content) == document
        assert canonical_bytes(read_document(content)) == content
    note = credited()
    assert read_credit_document(canonical_bytes(note)) == note
    assert "Łódź Zażółć".encode() in canonical_bytes(note)


def floats_in(content: Any) -> list[float]:
    """Every float in a JSON value."""
    match content:
        case dict():
            return [each for value in content.values() for each in floats_in(value)]
        case list():
            return [each for value in content for each in floats_in(value)]
        case float():
            return [content]
    return []


def test_nothing_in_it_is_a_float_and_its_names_are_sorted() -> None:
    """Whoever reads it elsewhere has the same digits."""
    for document in (a_document(FIRST, SECOND), credited()):
        content = canonical_bytes(document)
        plain = json.loads(content)
        assert floats_in(plain) == []
        again = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert again.encode() == content


def test_an_instant_of_another_zone_is_an_error() -> None:
    """The same instant would be other bytes."""
    document = a_document(FIRST)
    there = document.cut_off.astimezone(timezone(timedelta(hours=2)))
    with pytest.raises(ValueError, match="in UTC"):
        canonical_bytes(replace(document, cut_off=there))


def test_a_float_is_not_read() -> None:
    content = canonical_bytes(a_document(FIRST)).replace(b'"row_count":3', b'"row_count":3.5')
    with pytest.raises(msgspec.ValidationError, match="row_count"):
        read_document(content)


def test_v03_dates_are_the_sellers() -> None:
    """06:00 UTC on 1 January is still the old year in Los Angeles: its date and its number."""
    morning = datetime.fromisoformat("2027-01-01T06:00:00Z")
    there, here = (date_of_issue(morning, zone) for zone in ("America/Los_Angeles", "UTC"))
    assert (there, here) == (date(2026, 12, 31), date(2027, 1, 1))
    assert number_of(series_of("INV", there), 12) == "INV-2026-000012"
    assert number_of(series_of("CN", here), 1_000_000) == "CN-2027-1000000"
    with pytest.raises(ValueError, match="from 1"):
        number_of(series_of("INV", here), 0)


def test_v05_terms_are_days_of_the_calendar() -> None:
    """30 days from 1 March 2017 are 31 March, over the change of clocks too."""
    assert due_on(date(2017, 3, 1), 30) == date(2017, 3, 31)
    assert due_on(date(2026, 12, 15), 30) == date(2027, 1, 14)
    assert due_on(date(2026, 12, 15), 0) == date(2026, 12, 15)
