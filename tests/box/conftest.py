"""Shared by the tests of the box core."""

import os
import shutil
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "programs"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))

from build import Programs  # noqa: E402


@pytest.fixture(scope="session")
def programs():
    made = Programs()
    yield made
    shutil.rmtree(made.directory)
