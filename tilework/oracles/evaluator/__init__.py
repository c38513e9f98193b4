"""TTIR executed on NumPy, op by op: verifies the frontend and every pass without a backend."""

from tilework.oracles.evaluator.machine import evaluate
from tilework.oracles.evaluator.values import EvaluationError

__all__ = ["EvaluationError", "evaluate"]
