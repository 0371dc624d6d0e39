"""The methods that `HudiTable` and `pyhudi.arrow.Table` share: what they do needs no engine.

A method imports what carries it out when it is called: a script that reads a table waits for no import of writes and
services, and each of them would take longer than a small read.
"""
