"""What can go wrong at run time; all are `TritonError`s."""

from tilework.errors import InterpreterError, OutOfResources, PTXASError, TritonError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]


class AutotunerError(TritonError):
    """No configuration is left to try."""

    def __init__(self, error_message: str | None = None) -> None:
        self.error_message = error_message or ""
        super().__init__(self.error_message)

    def __str__(self) -> str:
        return f"Autotuner error: {self.error_message}"
