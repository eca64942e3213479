"""The price book as people read it: by line, with what holds now and what begins when."""

import msgspec

from billing.domain.price_standing import standing_of
from billing.postgres.price_line_list import WHOSE, LineFilter, LineKey, list_lines
from gateway.administration.checks import check_tenant_id
from gateway.administration.pages import (
    LIMIT_DEFAULT,
    Page,
    check_page_limit,
    page_of,
    position_of,
)
from gateway.administration.store import Store, verb
from gateway.administration.views import View, price_view
from gateway.errors import Unprocessable


class PriceLineVerbs(Store):
    """The verb."""

    @verb
    async def price_lines(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        wanted: LineFilter = LineFilter(),  # noqa: B008 - frozen
    ) -> Page[View]:
        """Lines of prices by model, currency, provider and whose they are. `now` is what holds, or
        ends the line; `later` what begins, the next first; `earlier` counts what held before."""
        check_page_limit(limit)
        if wanted.whose is not None and wanted.whose not in WHOSE:
            raise Unprocessable(f"whose: must be one of {', '.join(WHOSE)}", param="whose")
        for name in ("tenant_id", "plan"):
            named = getattr(wanted, name)
            if named is not None:
                check_tenant_id(named, field=name)
        after = None if cursor is None else _key_of_cursor(cursor)
        async with self._reading() as db:
            found = await list_lines(db, wanted, limit=limit + 1, after=after)
        now_ms = self._now_ms()
        shown: list[tuple[str, View]] = []
        for key, prices in found:
            standing = standing_of(prices, now_ms)
            view = {
                **{name: value or None for name, value in key._asdict().items()},
                "now": None if standing.now is None else price_view(standing.now),
                "later": [price_view(each) for each in standing.later],
                "earlier": standing.earlier,
            }
            shown.append((msgspec.json.encode(key).decode(), view))
        return page_of(shown, limit)


def _key_of_cursor(cursor: str) -> LineKey:
    """After which line a page goes on. Raises Unprocessable."""
    try:
        return msgspec.json.decode(position_of(cursor), type=LineKey)
    except msgspec.MsgspecError as error:
        raise Unprocessable(
            "cursor: must be one that an earlier page gave", param="cursor"
        ) from error
