"""The kernels of `gpu_kernels.py` for one compiler or the other: `load("triton")`."""

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType


def load(compiler: str, source: str = "gpu_kernels.py") -> ModuleType:
    """The kernels of a file beside this one, with `tl` and `triton` of one compiler."""
    text = (
        Path(__file__)
        .with_name(source)
        .read_text()
        .replace("tilework", compiler)
        .replace("import triton as triton", "import triton")
    )
    path = Path(tempfile.mkdtemp()) / f"kernels_{compiler}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
