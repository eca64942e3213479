"""What a tenant used, for its own people: the page of usage, held to the tenant's own."""

from litestar import get

from gateway.console.access import own_page
from gateway.console.usage import UsageFile, usage_file, usage_page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission

_READ = own_page(Permission.USAGE_READ)


@get("/own/usage", opt=_READ)
async def show_own_usage(visit: Here) -> Answer:
    """By key, model or class, over time."""
    return await usage_page(visit, "/console/own/usage", held_to=visit.tenant_id)


@get("/own/usage/groups.csv", opt=_READ)
async def download_own_groups(visit: Here) -> Answer:
    """The page's table as a file, of all its pages."""
    return await usage_file(visit, UsageFile.GROUPS, held_to=visit.tenant_id)


@get("/own/usage/over-time.csv", opt=_READ)
async def download_own_plot(visit: Here) -> Answer:
    """What the page's plot draws, as a file."""
    return await usage_file(visit, UsageFile.OVER_TIME, held_to=visit.tenant_id)


PAGES = (show_own_usage, download_own_groups, download_own_plot)
