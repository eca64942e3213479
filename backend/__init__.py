"""What runs behind or beside the gateway: engines, embedded stores, the development supervisor.

Imports neither `gateway` nor `billing`.
"""
