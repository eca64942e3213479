"""The database schema's history, one revision a file, run by `weir migrate`.

Owns every table, view and trigger of gateway and billing; owns no rows.
"""
