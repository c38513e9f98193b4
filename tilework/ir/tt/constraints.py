"""The constraints under their older name."""

from tilework.ir.constraints import *  # noqa: F403
