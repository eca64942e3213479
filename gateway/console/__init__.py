"""The console below `/console`: server-rendered pages over the same verbs as the APIs.

Owns: pages, forms, their templates, styles and scripts, the cookie of a session.
Does not own: what may be read or written (verbs and permissions do), nor any figure it shows.
"""
