"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")
