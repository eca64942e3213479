"""Limits in the console: their effect is shown first, and nobody's change is lost."""

import re
from html import unescape

from console_visitor import ME, OWN, Visitor

from gateway.domain.account import Role
from gateway.domain.tenant import Limits

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
FIELD = re.compile(r'<input id="[^"]+" name="([^"]+)"[^>]*? value="([^"]*)"')
TICKED = re.compile(r'<input type="checkbox" id="[^"]+" name="([^"]+)" value="1" checked')
CHOSEN = re.compile(r'<select id="[^"]+" name="([^"]+)".*?</select>', re.DOTALL)
SELECTED = re.compile(r'<option value="([^"]*)" selected')
PATH = "/console/tenants/acme/limits"


def fields_of(page: str) -> dict[str, str]:
    """What the browser would send of the form on the page, but for its token."""
    form = page[page.rindex("/limits/effect") :]
    found = {name: unescape(value) for name, value in HIDDEN.findall(form) + FIELD.findall(form)}
    found |= dict.fromkeys(TICKED.findall(form), "1")
    for select in CHOSEN.finditer(form):
        chosen = SELECTED.search(select[0])
        found[select[1]] = chosen[1] if chosen else ""
    del found["csrf"]
    return found


def wanted_of(page: str) -> dict[str, str]:
    """What the button that saves would send."""
    form = page[page.index("What it would do") : page.index("Save these limits")]
    return {name: unescape(value) for name, value in HIDDEN.findall(form) if name != "csrf"}


async def test_the_effect_is_shown_and_then_saved(visitor: Visitor) -> None:
    """Now, then, and what is promised in all; it is in the audit log, and said to be in force."""
    await visitor.administration.put_tenant_limits(ME, "acme", Limits(tpm=1_000, max_sequences=8))
    await visitor.log_in()
    fields = fields_of((await visitor.get(PATH)).text)
    assert (fields["tpm"], fields["max_sequences"], fields["none.rpm"]) == ("1000", "8", "1")
    answer = await visitor.post(f"{PATH}/effect", fields | {"max_sequences": "0", "tpm": "2,000"})
    assert answer.status_code == 200
    assert "Nothing is saved yet." in answer.text
    assert "binds at once" in answer.text
    assert "2,000" in answer.text
    assert "Promised to all tenants" in answer.text
    assert (await visitor.administration.get_tenant("acme")).limits.tpm == 1_000
    answer = await visitor.post(PATH, wanted_of(answer.text))
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/tenants/acme")
    saved = (await visitor.administration.get_tenant("acme")).limits
    assert (saved.tpm, saved.max_sequences, saved.rpm) == (2_000, 0, None)
    page = (await visitor.get("/console/tenants/acme")).text
    assert "The limits of Acme are saved." in page
    assert "tenant.limits" in page


async def test_limits_of_a_model_and_of_no_kind_at_all(visitor: Visitor) -> None:
    """A model is narrowed, and let go again; "no limit" is a box."""
    await visitor.administration.put_tenant_limits(ME, "acme", Limits(tpm=1_000))
    await visitor.log_in()
    fields = fields_of((await visitor.get(PATH)).text)
    fields |= {"models.m.rpm": "5", "tpm": "", "none.tpm": "1"}
    assert (await visitor.post(PATH, fields)).status_code == 303
    saved = (await visitor.administration.get_tenant("acme")).limits
    assert (saved.tpm, saved.models["m"].rpm) == (None, 5)
    fields = fields_of((await visitor.get(PATH)).text)
    assert fields["models.m.rpm"] == "5"
    await visitor.post(PATH, fields | {"models.m.rpm": ""})
    assert (await visitor.administration.get_tenant("acme")).limits.models == {}


async def test_a_change_of_somebody_else_is_not_lost(visitor: Visitor) -> None:
    """It is shown beside what was typed, and who made it; nothing is saved until it was seen."""
    await visitor.log_in()
    fields = fields_of((await visitor.get(PATH)).text)
    await visitor.administration.put_tenant_limits("user:ann", "acme", Limits(rpm=77))
    mine = fields | {"tpm": "500"}
    del mine["none.tpm"]
    for path in (PATH, f"{PATH}/effect"):
        answer = await visitor.post(path, mine)
        assert answer.status_code == 409
        assert "Somebody else saved other limits meanwhile" in answer.text
        assert "user:ann" in answer.text
        assert "77" in answer.text
        saved = (await visitor.administration.get_tenant("acme")).limits
        assert (saved.rpm, saved.tpm) == (77, None)
    again = fields_of(answer.text)
    assert again["tpm"] == "500"
    assert (await visitor.post(PATH, again)).status_code == 303
    saved = (await visitor.administration.get_tenant("acme")).limits
    assert (saved.rpm, saved.tpm) == (None, 500)


async def test_what_is_refused_stands_at_its_field(visitor: Visitor) -> None:
    """By the form or by the rules, of a model too, with what was typed kept."""
    await visitor.log_in()
    fields = fields_of((await visitor.get(PATH)).text)
    del fields["none.monthly_budget"]
    for name, value in (
        ("monthly_budget", "12.345"),
        ("weight", "5000"),
        ("models.m.tpm", "lots"),
        ("models.m.monthly_budget", "1"),
    ):
        typed = {"none.monthly_budget": "1"} if name != "monthly_budget" else {}
        for path in (PATH, f"{PATH}/effect"):
            answer = await visitor.post(path, fields | typed | {name: value})
            assert answer.status_code == 422, name
            assert f'id="f-{name}-error"' in answer.text, name
            assert f'value="{value}"' in answer.text, name


async def test_who_may_not_change_them_sees_them(visitor: Visitor) -> None:
    """Without a form, and without a way round it."""
    await visitor.administration.put_tenant_limits(ME, "acme", Limits(tpm=4_321))
    await visitor.log_in(Role.OPERATOR)
    page = (await visitor.get(PATH)).text
    assert "4,321" in page
    assert "Show effect" not in page
    for path in (PATH, f"{PATH}/effect"):
        assert (await visitor.post(path, {})).status_code == 403


async def test_only_models_that_there_are_are_drawn_and_each_once(visitor: Visitor) -> None:
    """A form that names one a thousand times makes no page of a thousand."""
    await visitor.log_in()
    fields = fields_of((await visitor.get(PATH)).text)
    named = {**fields, "models.m.rpm": "5", "csrf": visitor.csrf, "model": ["m"] * 1_000}
    for model, status in (("m", 200), ("nope", 422)):
        sent = {**named, "model": [*named["model"], model]}
        answer = await visitor.client.post(f"{PATH}/effect", data=sent, headers=OWN)
        assert answer.status_code == status, answer.text
        assert answer.text.count("<summary><strong>") == 1
        assert answer.text.count('name="model" value="m"') == (2 if status == 200 else 1)
        assert "nope" not in answer.text
