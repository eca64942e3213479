"""Whole minor units of a currency (cents; yen; fils): the only place where money is rounded."""

from collections.abc import Sequence

from billing.domain.money import PICO_DIGITS, currency_exponent


def half_away(numerator: int, denominator: int) -> int:
    """The whole number that is nearest to a fraction, a half away from zero. The denominator is
    positive."""
    if denominator <= 0:
        raise ValueError("a fraction's denominator is positive")
    whole = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -whole if numerator < 0 else whole


def minor_of(pico: int, currency: str) -> int:
    """That many pico-units in whole minor units, a half away from zero. Raises UnknownCurrency."""
    return half_away(pico, pico_per_minor(currency))


def pico_per_minor(currency: str) -> int:
    """Pico-units of a minor unit: 10**10 of a cent, 10**12 of a yen. Raises UnknownCurrency."""
    pico: int = 10 ** (PICO_DIGITS - currency_exponent(currency))
    return pico


def show_minor(minor: int, currency: str) -> str:
    """So many minor units in decimal digits with exactly the currency's decimals: "12.30", "-5" of
    yen. Raises UnknownCurrency."""
    exponent = currency_exponent(currency)
    digits = f"{abs(minor):0{exponent + 1}}"
    sign = "-" if minor < 0 else ""
    if exponent == 0:
        return sign + digits
    return f"{sign}{digits[:-exponent]}.{digits[-exponent:]}"


def largest_remainder(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """A total in whole parts in proportion to the weights, which sum to it exactly.

    Each part is its exact share rounded down or up; what rounding down leaves goes to the largest
    remainders, of equal ones to the first. Raises ValueError for a negative total or weight, and
    for a total that no weight can take.
    """
    whole = sum(weights)
    if total < 0 or any(weight < 0 for weight in weights):
        raise ValueError("neither a total nor a weight is negative")
    if whole == 0:
        if total:
            raise ValueError("nothing has a weight that could take the total")
        return (0,) * len(weights)
    shares = [divmod(total * weight, whole) for weight in weights]
    left = total - sum(share for share, _ in shares)
    order = sorted(range(len(shares)), key=lambda index: (-shares[index][1], index))
    up = set(order[:left])
    return tuple(share + (index in up) for index, (share, _) in enumerate(shares))
