"""Brings tables to another version: the steps, what each changes, and the call that takes one."""
