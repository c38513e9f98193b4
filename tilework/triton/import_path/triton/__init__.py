"""The `triton` that Python finds in processes that a program under `tilework.as_triton` starts.

The folder above this one is in their search path, and is no package: see `tilework/as_triton.py`. The tilework that
they import is the one that this file belongs to, even if their search path has another.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if "tilework" not in sys.modules:
    folder = Path(__file__).resolve().parents[3]
    spec = spec_from_file_location("tilework", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    sys.modules["tilework"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)

from tilework.as_triton import replace_stand_in

replace_stand_in(__name__)
