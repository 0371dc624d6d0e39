"""Conditions of users: Spark evaluates them, and the reader gets predicates that skip files."""
