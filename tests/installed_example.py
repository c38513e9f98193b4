"""`PYTHON tests/installed_example.py`: the README's first example, with the tilework that PYTHON has installed.

`make check-wheel` runs it in an environment that holds nothing but the wheel and what it requires.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKS = """
assert np.allclose(out, x + y)
from importlib.metadata import version
assert version("tilework") == tilework.__version__
assert tilework.compile, "what is loaded later is there too"
print("the example runs with", tilework.__version__, "of", tilework.__file__)
"""


def first_example() -> str:
    """The first Python program of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found, "README.md has no example"
    return found.group(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "example.py"
        script.write_text(first_example() + CHECKS)
        # -I: neither this checkout nor PYTHONPATH nor the user's packages
        program = [sys.executable, "-I", str(script)]
        shown = subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(shown, end="")
    assert str(ROOT / "tilework") not in shown, "that is the checkout, not what is installed"


if __name__ == "__main__":
    main()
