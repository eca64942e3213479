"""Pure rules of the gateway: values in, values out. No I/O, no clock, no asyncio."""
