"""Finds dead writes, undoes them, and removes what they left in the store."""
