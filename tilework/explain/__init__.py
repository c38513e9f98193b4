"""Why was this compiled again, why is it slow, why were these configurations pruned, why is it different: docs/explain.md."""

from tilework.explain.findings import Explanation, Finding, Section

__all__ = ["Explanation", "Finding", "Section"]
