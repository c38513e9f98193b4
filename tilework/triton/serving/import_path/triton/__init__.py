"""What Python finds as `triton` in processes that a program under `tilework.as_triton` starts.

The folder above this one stands in their search path, and is no package: see `tilework/as_triton.py`. The tilework that they
get is the one that this file belongs to, wherever else their search path would find one.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if "tilework" not in sys.modules:
    folder = Path(__file__).resolve().parents[4]
    spec = spec_from_file_location("tilework", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    sys.modules["tilework"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)

from tilework.as_triton import replace_stand_in

replace_stand_in(__name__)
