"""Invoices and credit notes as JSON, CSV and PDF, each made of the document alone: the same
document gives the same bytes."""
