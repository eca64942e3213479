"""What was typed into a form, and what is wrong with it: shown again as it was, at its field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from gateway.domain.instants import ms_of
from gateway.errors import Conflict, Unprocessable, WeirError

TEXT_CHARACTERS_MAX = 100_000


@dataclass
class Form:
    """The fields of a form by name. `errors` names what is wrong by field; under "" what is wrong
    with the whole."""

    values: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def filled(cls, values: Mapping[str, object]) -> "Form":
        """A form that shows what is stored; None is an empty field."""
        return cls({name: ["" if v is None else str(v)] for name, v in values.items()})

    def text(self, name: str) -> str:
        """What was typed, without space around it."""
        return self.values.get(name, [""])[0].strip()

    def secret(self, name: str) -> str:
        """What was typed, to the last space: for passwords."""
        return self.values.get(name, [""])[0]

    def optional(self, name: str) -> str | None:
        """What was typed, None where the field was left empty."""
        return self.text(name) or None

    def all(self, name: str) -> list[str]:
        """Every choice of that name, for boxes that were ticked."""
        return self.values.get(name, [])

    def flag(self, name: str) -> bool:
        """Whether the box was ticked."""
        return bool(self.text(name))

    def whole(self, name: str) -> int | None:
        """A whole number, None where the field was left empty; spaces and commas between thousands
        are taken as such. What is none is noted at the field, and the form is not `ok`."""
        text = self.text(name).replace(",", "").replace(" ", "")
        if not text:
            return None
        if text.isascii() and text.isdigit() and len(text) <= 18:
            return int(text)
        self.errors[name] = "must be a whole number"
        return None

    def instant(self, name: str) -> datetime | None:
        """An instant in UTC, None where the field was left empty; one without an offset is of UTC.
        What is none is noted at the field."""
        text = self.text(name)
        if not text:
            return None
        try:
            at = datetime.fromisoformat(text)
            return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
        except (ValueError, OverflowError):
            self.errors[name] = "must be an instant such as 2027-01-31 12:00, of UTC"
            return None

    def instant_ms(self, name: str) -> int | None:
        """The same in Unix milliseconds."""
        return ms_of(self.instant(name))

    def day(self, name: str) -> date | None:
        """A day, None where the field was left empty. What is none is noted at the field."""
        text = self.text(name)
        if not text:
            return None
        try:
            return date.fromisoformat(text)
        except ValueError:
            self.errors[name] = "must be a day like 2027-01-31"
            return None

    def need(self, *names: str) -> None:
        """Note at each of these fields that it is empty, where it is."""
        for name in names:
            if not self.text(name):
                self.errors[name] = "must not be empty"

    def refused(self, error: WeirError, names: Mapping[str, str] | None = None) -> "Form":
        """This form with what a verb said of it, at the field that it named, or that what it named
        is a part of; of the whole where that is none of the form's. `names` has the fields that the
        verb calls otherwise than the form does, and those that are sent only where they are chosen.
        """
        param = name = error.param or ""
        known = {**dict.fromkeys(self.values), **(names or {})}
        while name and name not in known:
            name = name[: max(name.rfind("."), name.rfind("["), 0)]
        message = error.message.removeprefix(f"{param}: ") if name else error.message
        self.errors[known.get(name) or name] = message
        return self

    @property
    def ok(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return not self.errors


REFUSALS = (Unprocessable, Conflict)
"""What a verb raises where a form should be shown again: `except REFUSALS as error`."""
