"""The GPU-hours of each day, as a file of two columns: checked whole, every error with its line."""

import csv
import io
from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction

from billing.domain.unit_cost.paid_time import DAY_MS, HOUR_MS, day_of
from billing.domain.unit_cost.quantities import InvalidQuantity, parse_decimal

HEADER = ["date", "gpu_hours"]
HOUR_DECIMALS = 3
_EPOCH = date(1970, 1, 1)
_ERRORS_MAX = 20


class InvalidHours(ValueError):
    """What is wrong with them; `errors` names each, with its line."""

    def __init__(self, errors: list[str]) -> None:
        more = f"; and {len(errors) - _ERRORS_MAX} more" if len(errors) > _ERRORS_MAX else ""
        super().__init__("; ".join(errors[:_ERRORS_MAX]) + more)
        self.errors = errors


def parse_gpu_hours(text: object) -> int:
    """GPU-milliseconds of hours such as "744.5". Raises InvalidQuantity."""
    return int(parse_decimal(text, decimals_max=HOUR_DECIMALS) * HOUR_MS)


def read_hours_file(text: str, start_ms: int, end_ms: int) -> dict[int, int]:
    """GPU-milliseconds of each day from `start_ms` on and before `end_ms`, by the day's number.

    Raises InvalidHours.
    """
    try:
        lines = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    except csv.Error as error:
        raise InvalidHours([f"is no CSV: {error}"]) from error
    if not lines or [cell.strip() for cell in lines[0]] != HEADER:
        raise InvalidHours([f"line 1: must be {','.join(HEADER)}"])
    rows = [
        (f"line {number}", cells) for number, cells in enumerate(lines[1:], start=2) if any(cells)
    ]
    return check_hours(rows, start_ms, end_ms)


def check_hours(
    rows: Iterable[tuple[str, list[str]]], start_ms: int, end_ms: int
) -> dict[int, int]:
    """The same of rows that each have a name: every day once, none missing and none besides.

    Raises InvalidHours.
    """
    if start_ms % DAY_MS or end_ms % DAY_MS:
        raise InvalidHours(["hours by day need a time that begins and ends at midnight UTC"])
    found: dict[int, int] = {}
    errors: list[str] = []
    for name, cells in rows:
        try:
            day, gpu_ms = _row(cells)
            if not start_ms <= day * DAY_MS < end_ms:
                raise InvalidQuantity(f"{cells[0].strip()} is not in the time that is asked about")
            if day in found:
                raise InvalidQuantity(f"{cells[0].strip()} is there twice")
        except InvalidQuantity as error:
            errors.append(f"{name}: {error}")
        else:
            found[day] = gpu_ms
    if not errors:
        errors = [
            f"{_EPOCH + timedelta(days=day)} is missing"
            for day in range(day_of(start_ms), day_of(end_ms))
            if day not in found
        ]
    if errors:
        raise InvalidHours(errors)
    return found


def _row(cells: list[str]) -> tuple[int, int]:
    if len(cells) != len(HEADER):
        raise InvalidQuantity(f"must have {len(HEADER)} cells")
    named = cells[0].strip()
    try:
        day = (date.fromisoformat(named if len(named) == 10 else "") - _EPOCH).days
    except ValueError as error:
        raise InvalidQuantity(f"{named[:20]!r} is no date such as 2027-01-31") from error
    try:
        return day, parse_gpu_hours(cells[1].strip())
    except InvalidQuantity as error:
        raise InvalidQuantity(f"gpu_hours {error}") from error


def hours_of(gpu_ms: Fraction | int) -> Fraction:
    """GPU-milliseconds as GPU-hours."""
    return Fraction(gpu_ms) / HOUR_MS
