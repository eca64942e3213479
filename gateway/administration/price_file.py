"""A file of prices as people write it, in TOML or CSV. It is read to its last line before anything
else is done with it: every line that is wrong is told, not only the first."""

import csv
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.administration.price_wishes import CLASSES, NewPrice, PriceTexts, read_price
from gateway.domain.instants import ms_of
from gateway.errors import Unprocessable

LINES_MAX = 2_000
"""Prices of one file, which are written in one transaction."""
_FIELDS = {
    **{name: name for name in ("model", "provider", "currency", "tenant_id", "plan")},
    **{name: name for name in ("input", "cached_input", "output", "reasoning", "request")},
    "class": "request_class",
    "withdrawn": "withdrawn",
}
"""What a price in the file may say, and what it is called here."""
_INSTANT = "effective_from"
_DEFAULTS = ("provider", "currency", _INSTANT)
"""What may stand once at the top of a TOML file, for every price that does not say it."""
_HEAD = re.compile(r"^\s*\[\[\s*price\s*\]\]")
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True)
class FileLine:
    """A price and the line on which it begins."""

    number: int
    wanted: NewPrice
    effective_from_ms: int | None


@dataclass(frozen=True)
class Fault:
    """What is wrong on a line; 0 is the file as a whole."""

    line: int
    what: str


class FaultyFile(Unprocessable):
    """422: some lines are wrong, so none is taken."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"line {each.line}: {each.what}" for each in faults))
        self.faults = faults


def read_toml(data: bytes) -> list[FileLine]:
    """The prices of `[[price]]` tables. Raises FaultyFile."""
    try:
        text = data.decode("utf-8-sig")
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise FaultyFile([Fault(0, "is not UTF-8")]) from error
    except tomllib.TOMLDecodeError as error:
        at = _TOML_LINE.search(str(error))
        what = _TOML_LINE.sub("", str(error)).strip()
        raise FaultyFile([Fault(int(at[1]) if at else 0, what)]) from error
    unknown = sorted(document.keys() - {"price", *_DEFAULTS})
    prices = document.get("price", [])
    if unknown:
        raise FaultyFile([Fault(0, f"{name}: is no field of a file of prices") for name in unknown])
    if not isinstance(prices, list) or not all(isinstance(each, dict) for each in prices):
        raise FaultyFile([Fault(0, "price: must be tables, each begun by [[price]]")])
    defaults = {name: document[name] for name in _DEFAULTS if name in document}
    heads = [n for n, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    if len(heads) != len(prices):
        # Written in a line, or heads within a text: then they are counted.
        heads = list(range(1, len(prices) + 1))
    return _read((number, {**defaults, **each}) for number, each in zip(heads, prices, strict=True))


def read_csv(data: bytes) -> list[FileLine]:
    """The prices of a table whose first line names its columns; what is empty is not said. Raises
    FaultyFile."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FaultyFile([Fault(0, "is not UTF-8")]) from error
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        names = list(reader.fieldnames or ())
        unknown = [name for name in names if name not in (*_FIELDS, _INSTANT)]
        if unknown or len(set(names)) < len(names):
            what = ", ".join(map(repr, unknown)) or "one that is there twice"
            raise FaultyFile([Fault(1, f"no column of a file of prices: {what}")])
        return _read(_rows(reader))
    except csv.Error as error:
        raise FaultyFile([Fault(reader.line_num + 1, str(error))]) from error


READERS: Mapping[str, Callable[[bytes], list[FileLine]]] = {".toml": read_toml, ".csv": read_csv}
"""By the ending of a file's name."""


def _rows(reader: "csv.DictReader[str]") -> Iterator[tuple[int, dict[str, Any]]]:
    for row in reader:
        fields: dict[str, Any] = {
            name: value for name, value in row.items() if value not in ("", None)
        }
        if "withdrawn" in fields:
            said = fields["withdrawn"]
            fields["withdrawn"] = {"true": True, "false": False}.get(said, said)
        yield reader.line_num, fields


def _read(found: Iterator[tuple[int, dict[str, Any]]]) -> list[FileLine]:
    lines: list[FileLine] = []
    faults: list[Fault] = []
    for number, fields in found:
        try:
            lines.append(_line(number, fields))
        except Unprocessable as error:
            faults.append(Fault(number, error.message))
    if not faults and not lines:
        faults = [Fault(0, "has no price")]
    if len(lines) > LINES_MAX:
        faults.append(Fault(0, f"has more than {LINES_MAX} prices"))
    if faults:
        raise FaultyFile(faults)
    return lines


def _line(number: int, fields: dict[str, Any]) -> FileLine:
    begins = fields.pop(_INSTANT, None)
    texts: dict[str, Any] = {}
    for name, value in fields.items():
        if not isinstance(name, str) or name not in _FIELDS:
            raise _wrong(str(name), "is no field of a price")
        if not isinstance(value, bool if name == "withdrawn" else str):
            kind = "true or false" if name == "withdrawn" else "a text in quotes"
            raise _wrong(name, f"must be {kind}")
        texts[_FIELDS[name]] = value
    if "model" not in texts:
        raise _wrong("model", "is missing")
    if texts.get("request_class") not in (None, *CLASSES):
        raise _wrong("class", f"must be one of {', '.join(CLASSES)}")
    return FileLine(number, read_price(PriceTexts(**texts)), _instant(begins))


def _instant(said: object) -> int | None:
    if said is None:
        return None
    try:
        instant = said if isinstance(said, datetime) else datetime.fromisoformat(str(said))
    except ValueError as error:
        raise _wrong(_INSTANT, "must be like 2027-01-31T12:00:00Z") from error
    if instant.tzinfo is None:
        raise _wrong(_INSTANT, "must end with Z or an offset from UTC")
    return ms_of(instant)


def _wrong(field: str, why: str) -> Unprocessable:
    return Unprocessable(f"{field}: {why}", param=field)
