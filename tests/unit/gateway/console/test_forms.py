"""What was typed is kept, and what is wrong with it stands at its field."""

from datetime import date

import pytest

from gateway.console.forms import Form
from gateway.errors import Conflict, Unprocessable


def test_fields_are_read_as_they_are_meant() -> None:
    """Space around them is none of them, but of a password it is."""
    form = Form({"a": [" x "], "p": [" secret "], "e": [" "], "n": ["12,345 678"], "t": ["1", "2"]})
    assert form.text("a") == "x"
    assert form.secret("p") == " secret "
    assert form.optional("e") is None
    assert form.whole("n") == 12_345_678
    assert form.whole("e") is None
    assert form.all("t") == ["1", "2"]
    assert form.flag("t")
    assert not form.flag("e")
    assert form.text("absent") == ""
    assert form.ok


@pytest.mark.parametrize("text", ["1.5", "-1", "1e3", "٣", "9" * 19, "x"])
def test_what_is_no_whole_number_is_noted_at_its_field(text: str) -> None:
    """And the form is not saved."""
    form = Form({"n": [text]})
    assert form.whole("n") is None
    assert form.errors == {"n": "must be a whole number"}
    assert not form.ok


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2027-01-31T12:00", "2027-01-31T12:00:00+00:00"),
        ("2027-01-31 12:00", "2027-01-31T12:00:00+00:00"),
        ("2027-01-31T12:00:00+02:00", "2027-01-31T10:00:00+00:00"),
    ],
)
def test_an_instant_is_of_utc_unless_it_says_another_offset(text: str, shown: str) -> None:
    """As the field beside says."""
    at = Form.filled({"at": text}).instant("at")
    assert at is not None
    assert at.isoformat() == shown


def test_an_empty_time_is_none_and_a_wrong_one_is_noted() -> None:
    """The form is then not ok. An offset may lead before the year 1."""
    form = Form.filled({"at": None, "wrong": "tomorrow", "far": "0001-01-01T00:00+02:00"})
    assert (form.instant("at"), form.instant_ms("at"), form.day("at")) == (None, None, None)
    assert form.ok
    assert form.instant("wrong") is None
    assert form.instant_ms("far") is None
    form.values["day"] = ["2027-02-30"]
    assert form.day("day") is None
    assert set(form.errors) == {"wrong", "far", "day"}
    form.values["day"] = ["2027-02-28"]
    assert form.day("day") == date(2027, 2, 28)


def test_an_empty_field_that_is_needed_is_noted() -> None:
    """One that is filled is not."""
    form = Form({"a": [" "], "b": ["x"]})
    form.need("a", "b")
    assert list(form.errors) == ["a"]


def test_a_refusal_stands_at_the_field_that_it_names() -> None:
    """Without the field's name said twice; what names none of the form's fields is of the whole."""
    form = Form({"url": ["u"], "id": ["i"]})
    form.refused(Unprocessable("url: must be an address", param="url"))
    assert form.errors == {"url": "must be an address"}
    assert Form({"limits": ["u"]}).refused(
        Unprocessable("limits.tpm: must be 1 to 9", param="limits.tpm")
    ).errors == {"limits": "must be 1 to 9"}
    assert form.refused(Conflict("w1 exists")).errors[""] == "w1 exists"
    unseen = Form({}).refused(Unprocessable("time_zone: must be one", param="time_zone"))
    assert unseen.errors == {"": "time_zone: must be one"}


@pytest.mark.parametrize(
    ("param", "field"),
    [
        ("override.reason", "reason"),
        ("lines[1].amount", "line-7"),
        ("address[2]", "address"),
        ("models.some-1.5b.tpm", "models.some-1.5b.tpm"),
        ("models", "models"),
        ("lines[0].amount", ""),
        ("rea", ""),
    ],
)
def test_a_refusal_may_name_a_part_of_a_field_or_call_it_otherwise(param: str, field: str) -> None:
    """The nearest field that there is, by the name that it has here."""
    form = Form.filled({"reason": "", "address": "", "models.some-1.5b.tpm": ""})
    names = {"override.reason": "reason", "lines[1]": "line-7", "models": "models"}
    form.refused(Unprocessable(f"{param}: is wrong", param=param), names)
    assert form.errors == {field: "is wrong" if field else f"{param}: is wrong"}


def test_what_is_stored_fills_a_form() -> None:
    """None is an empty field."""
    form = Form.filled({"tpm": 1_000, "rpm": None})
    assert (form.text("tpm"), form.text("rpm")) == ("1000", "")
