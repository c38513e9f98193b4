"""The interface of Triton's profiler (Proton): `import tilework.profiler as proton`, docs/profiler.md."""

from tilework.inspect.profiler import *  # noqa: F403
from tilework.inspect.profiler import __all__ as __all__
from tilework.inspect.profiler import viewer as viewer
