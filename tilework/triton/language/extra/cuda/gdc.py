"""Dependent launches."""

from tilework.language.extra.cuda import gdc_launch_dependents, gdc_wait

__all__ = ["gdc_launch_dependents", "gdc_wait"]
