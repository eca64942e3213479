"""Proof that usage records are whole: each check compares two accounts of the same thing that came
by different ways. Pure: what is compared is read by others and handed in.

REC-1 `journals`, REC-2 `requests`, REC-3 `engines`, REC-4 `rollups`, REC-5 `invoices`,
REC-6 `attempts`, REC-7 `replay`.
"""
