"""TTIR executed on NumPy, op by op: how the frontend and every pass are proved without a backend."""

from tilework.evaluator.errors import EvaluationError
from tilework.evaluator.machine import evaluate

__all__ = ["EvaluationError", "evaluate"]
