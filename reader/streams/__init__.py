"""Reads a table as a stream: which completed writes a batch has, and where it ends."""
