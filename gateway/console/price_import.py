"""Many prices from a file: what they would do is shown before any is written."""

from litestar import get, post
from litestar.datastructures import UploadFile

from gateway.administration.price_effect_view import effect_view
from gateway.administration.price_file import READERS, FaultyFile, FileLine
from gateway.administration.views import price_view
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.money_forms import TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.http.form_fields import form_fields

_PATH = "/console/money/prices"
_KINDS = [(ending, ending.removeprefix(".").upper()) for ending in READERS]
EFFECTS_SHOWN = 200
IMPORT_BYTES_MAX = 4 * 1024 * 1024
"""A price book is the largest thing that is sent."""


@get("/money/prices/import", opt=page(Permission.PRICES_WRITE))
async def show_import(visit: Here) -> Answer:
    """The form for a file."""
    return _form_page(visit, Form.filled({"kind": ".csv", "text": None}))


@post(
    "/money/prices/import",
    opt=page(Permission.PRICES_WRITE),
    request_max_body_size=IMPORT_BYTES_MAX,
)
async def preview_import(visit: Here) -> Answer:
    """What the file would do; nothing is written."""
    form = await _sent(visit)
    lines = _read(form)
    if lines is None:
        return _form_page(visit, form, status=422)
    try:
        imported, effect = await visit.parts.administration.preview_prices(visit.actor, lines)
    except FaultyFile as error:
        _note_faults(form, error)
        return _form_page(visit, form, status=422)
    except TOLD as error:
        return _form_page(visit, form.refused(error), status=error.status)
    return visit.show(
        "prices/effect.html",
        form=form,
        lines=[
            {"line": at.line, "is": at.novelty.value, **price_view(at.price)} for at in imported
        ],
        changes=sum(1 for each in imported if each.novelty.value != "same"),
        effects=[effect_view(each) for each in effect[:EFFECTS_SHOWN]],
        more=max(0, len(effect) - EFFECTS_SHOWN),
    )


@post(
    "/money/prices/import/write",
    opt=page(Permission.PRICES_WRITE),
    request_max_body_size=IMPORT_BYTES_MAX,
)
async def write_import(visit: Here) -> Answer:
    """Write all of it, or where any line is refused, nothing."""
    form = await _sent(visit)
    lines = _read(form)
    if lines is None:
        return _form_page(visit, form, status=422)
    try:
        imported = await visit.parts.administration.import_prices(visit.actor, lines)
    except FaultyFile as error:
        _note_faults(form, error)
        return _form_page(visit, form, status=422)
    except TOLD as error:
        return _form_page(visit, form.refused(error), status=error.status)
    written = sum(1 for each in imported if each.novelty.value != "same")
    return visit.go(_PATH, said=f"{written} of {len(imported)} prices were written.")


async def _sent(visit: Visit) -> Form:
    """The form; what an uploaded file holds stands in the place of what was pasted."""
    values: dict[str, list[str]] = {}
    for name, value in await form_fields(visit.request):
        if isinstance(value, UploadFile):
            data = await value.read()
            if data:
                values["text"] = [data.decode("utf-8-sig", errors="replace")]
                ending = "." + value.filename.rpartition(".")[2].lower()
                values["kind"] = [ending if ending in READERS else "?"]
        else:
            values.setdefault(name, [str(value)])
    return Form(values)


def _read(form: Form) -> list[FileLine] | None:
    """The lines of the file; None where it has faults, which are noted."""
    reader = READERS.get(form.text("kind"))
    if reader is None:
        form.errors["kind"] = "must be CSV or TOML, as the file's name ends"
        return None
    form.need("text")
    if not form.ok:
        return None
    try:
        return reader(form.secret("text").replace("\r\n", "\n").encode())
    except FaultyFile as error:
        _note_faults(form, error)
        return None


def _note_faults(form: Form, error: FaultyFile) -> None:
    form.errors["text"] = error.message
    form.errors[""] = f"{len(error.faults)} of its lines cannot be taken; nothing was written."


def _form_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    return visit.show("prices/import.html", status=status, form=form, kinds=_KINDS)


PAGES = (show_import, preview_import, write_import)
