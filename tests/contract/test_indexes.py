"""What every index that pyhudi has itself does for a table; what two of them share the faster tests ask of one."""

from __future__ import annotations

import unittest

import pytest
from pyhudi.testing.indexes import IndexContract


@pytest.mark.slow
class TestBucket(IndexContract, unittest.TestCase):
    index = "BUCKET"


@pytest.mark.slow
class TestSimple(IndexContract, unittest.TestCase):
    index = "SIMPLE"


@pytest.mark.slow
class TestGlobalSimple(IndexContract, unittest.TestCase):
    index = "GLOBAL_SIMPLE"


class TestBloom(IndexContract, unittest.TestCase):
    index = "BLOOM"


@pytest.mark.slow
class TestGlobalBloom(IndexContract, unittest.TestCase):
    index = "GLOBAL_BLOOM"
