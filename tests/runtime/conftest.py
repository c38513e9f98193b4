"""Fixtures of several files of this folder."""

from tests.runtime.cuda_fixture import cuda as cuda
