"""TTIR executed on NumPy, op by op: how the frontend and every pass are proved without a backend."""

from tilework.oracles.evaluator.evaluation_errors import EvaluationError
from tilework.oracles.evaluator.machine import evaluate

__all__ = ["EvaluationError", "evaluate"]
