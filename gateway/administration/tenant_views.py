"""What a tenant's own people are shown of a view: their own facts, without what is only for those
who run the gateway: who of them did it, and why, and what they still have to do."""

from gateway.administration.views import View

_OF_STAFF = ("drafted_by", "issued_by", "voided_by", "void_reason", "override")
_WORK_LEFT = ("blockers", "unbilled")


def own_tenant(view: View, *, with_billing: bool) -> View:
    """Of a tenant; whom its invoices are made out to only for those who may read them."""
    return view if with_billing else {**view, "billing_profile": {}}


def own_invoice(view: View) -> View:
    """Of an invoice, whole or without its lines."""
    shown = {**view, **dict.fromkeys(_OF_STAFF)}
    shown |= {name: [] for name in _WORK_LEFT if name in view}
    if "payments" in view:
        hidden = dict.fromkeys(("noted_by", "reason"))
        shown["payments"] = [{**each, **hidden} for each in view["payments"]]
    if "credit_notes" in view:
        shown["credit_notes"] = [own_credit_note(each) for each in view["credit_notes"]]
    return shown


def own_credit_note(view: View) -> View:
    """Of a credit note, whole or without its lines. Its reason is printed, and stays."""
    return {**view, "issued_by": None, "reference": None}
