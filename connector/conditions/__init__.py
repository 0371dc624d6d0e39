"""Conditions of users: what of them leaves out files, and how far Spark agrees that it may."""
