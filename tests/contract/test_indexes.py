"""What every index that pyhudi has itself does for a table."""

from __future__ import annotations

import unittest

from pyhudi.testing.indexes import IndexContract


class TestBucket(IndexContract, unittest.TestCase):
    index = "BUCKET"


class TestSimple(IndexContract, unittest.TestCase):
    index = "SIMPLE"


class TestGlobalSimple(IndexContract, unittest.TestCase):
    index = "GLOBAL_SIMPLE"


class TestBloom(IndexContract, unittest.TestCase):
    index = "BLOOM"


class TestGlobalBloom(IndexContract, unittest.TestCase):
    index = "GLOBAL_BLOOM"
