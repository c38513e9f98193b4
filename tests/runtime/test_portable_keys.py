"""Keys say what a kernel is, not where it is: whatever changes the code changes the key, and nothing else does.

Each case is a kernel with one part that can be written in two ways. Both are compiled to TTIR: the texts differ, so
the keys must. The same files in another folder, under other names and with other lines around have the same key and,
without locations, the same TTIR.
"""

import array
import builtins
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import linecache
import operator
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tilework import knobs
from tilework.compiler import ASTSource
from tilework.ir.printer import print_module
from tilework.language.constant_text import Writer, is_portable, portable_text
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.specialization_record import SpecializationRecord
from tilework.target import GPUTarget
from tilework.targets.base import find_backend

ROOT = Path(tilework.__file__).parent.parent
TARGET = GPUTarget("cuda", 90, 32)
HEADER = "import tilework\nimport tilework.language as tl\n"
STORE = "\n@tilework.jit\ndef k(out):\n    tl.store(out, {})\n"
CONSTEXPR = "@tilework.constexpr_function\ndef f():\n    return {}\n"
METHOD = "\nclass Host:\n    def value(self):\n        return {}\nhost = Host()\nhost.state = 1\n"
HOST = "\n@tilework.constexpr_function\ndef called():\n    return host.value()\n" + STORE.format("called()")


def kernel(before: str, value: str) -> dict[str, str]:
    """Return the text of a module whose kernel stores a value."""
    return {"main": before + STORE.format(value)}


def host(before: str, value: str, **others: str) -> dict[str, str]:
    """Return the text of a module whose kernel stores the result of a Python method that runs while compiling."""
    return {"main": before + METHOD.format(value) + HOST, **others}


MODE = "import enum\nclass Mode(enum.Enum):\n    FAST = {}\n    SLOW = 7\n"
MODE_1 = MODE.format("1")
MARKS = "class Mark:\n    x = 1\nA, B = Mark(), Mark()\nA.y = B.y = 2\n"
CASES: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    # objects that the kernel's own text refers to
    "its text": (kernel("", "§"), ("1", "2")),
    "a constexpr": (kernel("N = tl.constexpr(§)\n", "N"), ("1", "2")),
    "the type of a constexpr": (kernel("N = tl.constexpr(§)\n", "tl.zeros((), tl.float32) + N / 2"), ("0.0", "-0.0")),
    "a callee": (kernel("@tilework.jit\ndef f(x):\n    return x + §\n", "f(1)"), ("1", "2")),
    "a callee of a callee": (
        kernel("@tilework.jit\ndef g(x):\n    return x + §\n@tilework.jit\ndef f(x):\n    return g(x) * 2\n", "f(1)"),
        ("1", "2"),
    ),
    "functions that call each other": (
        kernel(
            "@tilework.jit\ndef g(x, n: tl.constexpr):\n    return f(x * §, n - 1) if n > 0 else x\n"
            "@tilework.jit\ndef f(x, n: tl.constexpr):\n    return g(x + 1, n - 1) if n > 0 else x\n",
            "f(1, 4)",
        ),
        ("3", "2"),
    ),
    "a default argument": (
        kernel("N = §\n@tilework.jit\ndef f(x, n: tl.constexpr = N):\n    return x + n\n", "f(1)"),
        ("1", "2"),
    ),
    "a closure": (
        {
            "main": "def made(n):\n    m = tl.constexpr(n)\n    @tilework.jit\n    def k(out):\n"
            "        tl.store(out, m)\n    return k\nk = made(§)\n"
        },
        ("1", "2"),
    ),
    "noinline": (
        kernel("@tilework.jit(noinline=§)\ndef f(x):\n    return x + 1\n", "f(tl.program_id(0))"),
        ("True", "False"),
    ),
    "the name of the symbol": (
        {"main": "@tilework.jit(repr=lambda s: '§')\ndef k(out):\n    tl.store(out, 1)\n"},
        ("one", "two"),
    ),
    "a builtin under another name": (
        kernel("from tilework.language import § as f\n", "f(tl.program_id(0), 3)"),
        ("minimum", "maximum"),
    ),
    "a function of the library under another name": (
        kernel("from tilework.language import § as f\n", "f(tl.arange(0, 4), 0)"),
        ("sum", "max"),
    ),
    "a module under another name": (
        kernel("import tilework.language.§ as lib\n", "lib.floor(tl.program_id(0) * 1.5)"),
        ("math", "extra.cuda.libdevice"),
    ),
    "a function of math": (kernel("from math import § as f\n", "f(2.5)"), ("floor", "ceil")),
    "a dtype": (kernel("T = tl.§\n", "tl.zeros((), T)"), ("float32", "int32")),
    "a dtype in a constexpr": (kernel("T = tl.constexpr(tl.§)\n", "tl.zeros((), T.value)"), ("float32", "int32")),
    "a variable that is assigned on another path": (
        {
            "main": "x = tl.constexpr(§)\n@tilework.jit\ndef k(out, C: tl.constexpr = False):\n    if C:\n"
            "        x = 3\n    tl.store(out, x)\n"
        },
        ("5", "6"),
    ),
    "a member of a module": ({**kernel("import cfg\n", "cfg.N"), "cfg": "N = tl.constexpr(§)\n"}, ("1", "2")),
    "which of two modules": (
        {
            **kernel("import one as a\nimport one as b\nimport § as c\n", "a.N + 2 * b.N + 4 * c.N"),
            "one": "N = tl.constexpr(1)\n",
            "two": "N = tl.constexpr(2)\n",
        },
        ("one", "two"),
    ),
    "which of three names": (
        {
            **kernel("import one as a\nimport §1 as b\nimport §2 as c\n", "a.N + 2 * b.N + 4 * c.N"),
            "one": "N = tl.constexpr(1)\n",
            "two": "N = tl.constexpr(2)\n",
        },
        ("one two", "two one"),
    ),
    "a member of a class in a module": (
        {**kernel("import cfg\n", "cfg.C.N"), "cfg": "class C:\n    N = tl.constexpr(§)\n"},
        ("1", "2"),
    ),
    "a function in a module": (
        {**kernel("import cfg\n", "cfg.f(1)"), "cfg": "@tilework.jit\ndef f(x):\n    return x + §\n"},
        ("1", "2"),
    ),
    "the globals of a function in a module": (
        {
            **kernel("from cfg import f\n", "f(1)"),
            "cfg": "N = tl.constexpr(§)\n@tilework.jit\ndef f(x):\n    return x + N\n",
        },
        ("1", "2"),
    ),
    "the module that is an argument": (
        {
            **kernel("import cfg\n@tilework.jit\ndef f(m: tl.constexpr):\n    return m.N\n", "f(cfg)"),
            "cfg": "N = tl.constexpr(§)\n",
        },
        ("1", "2"),
    ),
    "a method of an aggregate": (
        kernel(
            "@tl.core._aggregate\nclass Box:\n    n: tl.constexpr\n    def __init__(self, n):\n"
            "        self.n = tl.constexpr(n)\n    @tilework.jit\n    def get(self):\n        return self.n + §\n",
            "Box(3).get()",
        ),
        ("1", "2"),
    ),
    "what an aggregate inherits": (
        kernel(
            "class Base:\n    @tilework.jit\n    def get(self):\n        return self.n + §\n"
            "@tl.core._aggregate\nclass Box(Base):\n    n: tl.constexpr\n    def __init__(self, n):\n"
            "        self.n = tl.constexpr(n)\n",
            "Box(3).get()",
        ),
        ("1", "2"),
    ),
    # what Python functions that run while compiling do and refer to
    "the code of a constexpr function": (kernel(CONSTEXPR.format("§"), "f()"), ("1", "2")),
    "its globals": (kernel("N = {'a': [§]}\n" + CONSTEXPR.format("N['a'][0]"), "f()"), ("1", "2")),
    "a member of a module that it takes": (
        {**kernel("import cfg\n" + CONSTEXPR.format("cfg.N"), "f()"), "cfg": "N = §\n"},
        ("1", "2"),
    ),
    "another constexpr function": (
        kernel(CONSTEXPR.format("§") + CONSTEXPR.format("f()").replace("f():", "g():"), "g()"),
        ("1", "2"),
    ),
    "the code of a method": (host("", "§"), ("1", "2")),
    "a function that it calls": (host("def f(n):\n    return n + §\n", "f(1)"), ("1", "2")),
    "a lambda": (host("f = lambda n: n + §\n", "f(1)"), ("1", "2")),
    "a default of a lambda": (host("f = lambda n=§: n\n", "f()"), ("1", "2")),
    "a default by keyword": (host("def f(*, n=§):\n    return n\n", "f()"), ("1", "2")),
    "which parameters are by keyword": (
        host(
            "def f(a, §b=1):\n    return a + b\n"
            "def g():\n    try:\n        return f(1, 2)\n    except TypeError:\n        return 9\n",
            "g()",
        ),
        ("", "*, "),
    ),
    "what a try covers": (
        host(
            "def fail():\n    raise ValueError\ndef f():\n    try:\n        §1\n    except ValueError:\n"
            "        return 1\n    §2\ndef g():\n    try:\n        return f() or 2\n    except ValueError:\n"
            "        return 3\n",
            "g()",
        ),
        ("fail() pass", "pass fail()"),
    ),
    "a nested function": (
        host("def f():\n    def g():\n        return N\n    return g()\nN = §\n", "f()"),
        ("1", "2"),
    ),
    "a cell": (host("def made(n):\n    return lambda: n\nf = made(§)\n", "f()"), ("1", "2")),
    "an attribute of a function": (host("def f():\n    return f.n\nf.n = §\n", "f()"), ("1", "2")),
    "a partial": (host("from functools import partial\nf = partial(max, §)\n", "f(0)"), ("1", "2")),
    "a function with a cache": (
        host("from functools import lru_cache\n@lru_cache\ndef f():\n    return §\n", "f()"),
        ("1", "2"),
    ),
    "an object that wraps a function": (
        host(
            "from functools import update_wrapper\nclass W:\n    def __init__(self, f, n):\n"
            "        update_wrapper(self, f)\n        self.n = n\n    def __call__(self):\n        return self.n\n"
            "f = W(max, §)\n",
            "f()",
        ),
        ("1", "2"),
    ),
    "a function with the name of another": (
        host("from functools import wraps\n@wraps(tl.exp)\ndef f(n):\n    return n + §\n", "f(1)"),
        ("1", "2"),
    ),
    "a builtin of Python": (host("f = §\n", "f((1, 2))"), ("max", "min")),
    "a bound builtin": (host("f = '§'.count\n", "f('a')"), ("a", "b")),
    "a function of a library": (host("import math\nf = math.§\n", "int(f(2.5))"), ("floor", "ceil")),
    "an operator": (host("import operator\nf = operator.§\n", "f(3, 2)"), ("add", "mul")),
    "a getter": (host("import operator\nf = operator.itemgetter(§)\n", "f((5, 6))"), ("0", "1")),
    "a long pattern": (
        host("import re\nP = re.compile('a' * 300 + '§')\n", "int(bool(P.match('a' * 300 + 'b')))"),
        ("b", "c"),
    ),
    "a complex number": (host("Z = complex(§, 0)\n", "int(Z.real)"), ("1", "2")),
    "an array": (host("import numpy as np\nA = np.arange(5000) + §\n", "int(A[2500])"), ("1", "2")),
    "an array of objects": (host("import numpy as np\nA = np.array([§], object)\n", "int(A[0])"), ("1", "2")),
    "a masked array": (
        host("import numpy as np\nA = np.ma.array([1, 2], mask=[§, 0])\n", "int(A.count())"),
        ("0", "1"),
    ),
    "a subclass of int": (
        host("class I(int):\n    def twice(self):\n        return self * §\nN = I(4)\n", "N.twice()"),
        ("1", "2"),
    ),
    "an attribute of a subclass of tuple": (
        host("class T(tuple):\n    pass\nN = T((1, 2))\nN.extra = §\n", "N.extra"),
        ("1", "2"),
    ),
    "an attribute of a subclass of dict": (
        host("class T(dict):\n    pass\nN = T(a=1)\nN.extra = §\n", "N.extra"),
        ("1", "2"),
    ),
    "an attribute of an object": (host("class T:\n    pass\nN = T()\nN.x = §\n", "N.x"), ("1", "2")),
    "an object that hides its state": (
        host("class T:\n    x = 0\n    def __repr__(self):\n        return 'T'\nN = T()\nN.x = §\n", "N.x"),
        ("1", "2"),
    ),
    "slots": (host("class T:\n    __slots__ = ('x', '__y')\nN = T()\nN.x = §\n", "N.x"), ("1", "2")),
    "what a dataclass has beside its fields": (
        host(
            "from dataclasses import dataclass\n@dataclass\nclass T:\n    x: int\n    def __post_init__(self):\n"
            "        self.y = N\nN = §\nD = T(1)\n",
            "D.y",
        ),
        ("1", "2"),
    ),
    "a tuple in a class": (host("class T:\n    S = (§, 3)\n", "T.S[0]"), ("1", "2")),
    "a property": (
        host("class T:\n    @property\n    def n(self):\n        return §\n", "T().n"),
        ("1", "2"),
    ),
    "a static method": (
        host("class T:\n    @staticmethod\n    def n():\n        return §\n", "T.n()"),
        ("1", "2"),
    ),
    "a cached property": (
        host(
            "from functools import cached_property\nclass T:\n    @cached_property\n    def n(self):\n"
            "        return §\n",
            "T().n",
        ),
        ("1", "2"),
    ),
    "a method that super calls": (
        host(
            "class A:\n    def n(self):\n        return §\nclass B(A):\n    def n(self):\n"
            "        return super().n() + 1\n",
            "B().n()",
        ),
        ("1", "2"),
    ),
    "a metaclass": (
        host(
            "class M(type):\n    def __getattr__(cls, name):\n        return §\nclass T(metaclass=M):\n    pass\n",
            "T.n",
        ),
        ("1", "2"),
    ),
    "a descriptor": (
        host(
            "class D:\n    def __get__(self, one, owner):\n        return self.v\nd = D()\nd.v = §\n"
            "class T:\n    n = d\n",
            "T().n",
        ),
        ("1", "2"),
    ),
    "the value of an enum": (host(MODE.format("§"), "Mode.FAST.value"), ("1", "2")),
    "a method of an enum": (
        host(MODE.format("1") + "    def n(self):\n        return §\n", "Mode.FAST.n()"),
        ("1", "2"),
    ),
    "another member of an enum": (
        host(MODE.format("1") + "    MORE = §\n", "len(Mode) + Mode.MORE.value"),
        ("9", "10"),
    ),
    "a mapping that is read only": (
        host("from types import MappingProxyType\nN = MappingProxyType({'a': §})\n", "N['a']"),
        ("1", "2"),
    ),
    "a slice": (host("S = slice(§, 3)\n", "len(range(9)[S])"), ("1", "2")),
    "a member of a module, in Python": (host("import cfg\n", "cfg.N", cfg="N = §\n"), ("1", "2")),
    "a member of a module in a package": (
        host("import pack.cfg\n", "pack.cfg.N", **{"pack/__init__": "", "pack/cfg": "N = §\n"}),
        ("1", "2"),
    ),
    "an import in a function": (
        host("import cfg as _\ndef f():\n    import cfg\n    return cfg.N\n", "f()", cfg="N = §\n"),
        ("1", "2"),
    ),
    "an import of a member in a function": (
        host("import cfg as _\ndef f():\n    from cfg import N\n    return 3 + (N is False)\n", "f()", cfg="N = §\n"),
        ("0", "False"),
    ),
    "an import of a module of a package in a function": (
        host(
            "import pack.cfg as _\ndef f():\n    import pack.cfg as c\n    return c.N\n",
            "f()",
            **{"pack/__init__": "", "pack/cfg": "N = §\n"},
        ),
        ("1", "2"),
    ),
    "an import from a package in a function": (
        host(
            "import pack.cfg as _\ndef f():\n    from pack import cfg\n    return cfg.N\n",
            "f()",
            **{"pack/__init__": "", "pack/cfg": "N = §\n"},
        ),
        ("1", "2"),
    ),
    "a module that is passed on": (
        host("import cfg\ndef f(m):\n    return m.N\n", "f(cfg)", cfg="N = §\n"),
        ("1", "2"),
    ),
    "a module under a local name": (
        host("import cfg\ndef f():\n    m = cfg\n    return g(m)\ndef g(m):\n    return m.N\n", "f()", cfg="N = §\n"),
        ("1", "2"),
    ),
    "a member by its name": (host("import cfg\n", "getattr(cfg, 'N')", cfg="N = §\n"), ("1", "2")),
    "a member by a name that is computed": (
        host("import cfg\n", "vars(cfg)['ABCN'[3]]", cfg="N = §\n"),
        ("1", "2"),
    ),
    # which of equal objects
    "which of two equal functions": (
        {
            **kernel("from one import f\nfrom § import f as g\n", "1 if f == g else 2"),
            **dict.fromkeys(("one", "two"), "@tilework.jit\ndef f(x):\n    return x\n"),
        },
        ("one", "two"),
    ),
    "which of two equal enums": (
        host("from one import Mode\nimport § as m\n", "int(m.Mode.FAST is Mode.FAST)", one=MODE_1, two=MODE_1),
        ("one", "two"),
    ),
    "which of two equal objects": (
        host("from one import Mark, A\nfrom one import § as m\n", "int(m is A)", one=MARKS),
        ("A", "B"),
    ),
    "whether a list holds one object twice": (
        host("from one import Mark, A, B\nL = [A, §]\n", "int(L[0] is L[1])", one=MARKS),
        ("A", "B"),
    ),
    # what says something about classes, functions and modules, or is added to them
    "the annotation of a function": (
        host("def f(x: §):\n    return x\n", "int(f.__annotations__['x'] is int)"),
        ("int", "float"),
    ),
    "the annotation of a class": (
        host("class C:\n    x: § = 1\n", "int(C.__annotations__['x'] is int)"),
        ("int", "float"),
    ),
    "metadata of a field": (
        host(
            "from dataclasses import dataclass, field, fields\n@dataclass\nclass D:\n"
            "    x: int = field(default=1, metadata={'a': §})\n",
            "fields(D)[0].metadata['a']",
        ),
        ("1", "2"),
    ),
    "the attributes that a pattern matches": (
        host(
            "class P:\n    __match_args__ = ('§',)\n    a, b = 1, 2\n"
            "def f(x):\n    match x:\n        case P(v):\n            return v\n",
            "f(P())",
        ),
        ("a", "b"),
    ),
    "the text of a class": (host("class C:\n    '§'\n", "len(C.__doc__)"), ("a", "bc")),
    "the text of a property": (
        host("class T:\n    n = property(lambda self: 1, doc='§')\n", "len(T.n.__doc__)"),
        ("a", "bc"),
    ),
    "the full name of a function": (
        host("def f():\n    pass\nf.__qualname__ = '§'\n", "len(f.__qualname__)"),
        ("a", "bc"),
    ),
    "an attribute of a partial": (
        host("from functools import partial\nf = partial(max, 1)\nf.n = §\n", "f.n"),
        ("1", "2"),
    ),
    "an attribute of a member of an enum": (host(MODE_1 + "Mode.FAST._x = §\n", "Mode.FAST._x"), ("1", "2")),
    "an attribute of a constexpr": (
        kernel("N = tl.constexpr(5)\nN.q = §\n" + CONSTEXPR.format("N.q"), "f()"),
        ("1", "2"),
    ),
    "an object like a bound method": (
        host("class C:\n    pass\nc = C()\nc.__func__, c.__self__, c.n = max, 1, §\n", "c.n"),
        ("1", "2"),
    ),
    "the order of an array": (
        host("import numpy as np\nA = np.array([[1, 2], [3, 4]], order='§')\n", "int(A.flags.f_contiguous)"),
        ("C", "F"),
    ),
    "a module that computes its members": (
        host("import cfg\n", "cfg.X", cfg="def __getattr__(name):\n    return §\n"),
        ("1", "2"),
    ),
    "a member of a module with underscores": (
        host("import cfg\n", "getattr(cfg, '__version__')", cfg="__version__ = §\n"),
        ("1", "2"),
    ),
    "a name that is added to Python's": (host("import builtins\nbuiltins.added = §\n", "added"), ("1", "2")),
    "a variable of the environment": (
        host("import os\nos.environ['TEST_KEYS'] = '§'\n", "int(os.environ['TEST_KEYS'])"),
        ("1", "2"),
    ),
    "a variable of the environment with a default": (
        host("from os import environ\nenviron['TEST_KEYS'] = '§'\n", "int(environ.get('TEST_KEYS', '3'))"),
        ("1", "2"),
    ),
    "a variable of the environment by a function": (
        host("import os\nos.environ['TEST_KEYS'] = '§'\n", "int(os.getenv('TEST_KEYS'))"),
        ("1", "2"),
    ),
    "a global by its name": (host("N = §\n", "globals()['N']"), ("1", "2")),
}


MORE = "# lines\n\n\ndef more(x):\n    return x + 1\n"


def written(files: Mapping[str, str], value: str) -> dict[str, str]:
    """Return the files of a case with a value for `§`, or with its two words for `§1` and `§2`."""
    words = value.split(" ")
    return {
        name: re.sub(r"§([12])", lambda found: words[int(found[1]) - 1], text).replace("§", value)
        for name, text in files.items()
    }


def loaded(folder: Path, files: Mapping[str, str], main: str = "main", above: str = "") -> Any:
    """Write the files into a folder of their own, and return the module `main`."""
    for name, text in files.items():
        path = folder / f"{main if name == 'main' else name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + (above if name == "main" else "") + text)
        linecache.cache.pop(str(path), None)
    names = {(main if name == "main" else name).split("/")[0] for name in files}
    for name in [name for name in sys.modules if name.split(".")[0] in names]:
        del sys.modules[name]
    sys.path[0] = str(folder)
    importlib.invalidate_caches()
    return importlib.import_module(main)


def source_of(module: Any) -> ASTSource:
    """Return the source of a compilation of the kernel `k`."""
    names = {name: "constexpr" for name in module.k.arg_names if name != "out"}
    return ASTSource(module.k, {"out": "*i32", **names}, dict.fromkeys(names, False))


def text_of(source: ASTSource) -> str:
    """Return the TTIR without locations and without the names of modules."""
    text = print_module(source.module(frontend_options(TARGET, {})), nameloc_prefix=False)
    folder = Path(source.fn.fn.__code__.co_filename).parent
    return text.replace(str(folder), "FOLDER").replace("other_name", "main")


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = set(sys.modules)
    sys.path.insert(0, "")
    with knobs.compilation.scope():
        yield
    os.environ.pop("TEST_KEYS", None)
    if hasattr(builtins, "added"):
        delattr(builtins, "added")
    del sys.path[0]
    for name in set(sys.modules) - before:
        if not name.startswith(("tilework", "numpy")):
            del sys.modules[name]


@pytest.mark.parametrize("name", CASES)
def test_what_changes_the_code_changes_the_key_and_nothing_else_does(name: str, tmp_path: Path) -> None:
    files, values = CASES[name]
    keys, served, texts = [], [], []
    for value in values:
        for folder, main, above in (
            ("here", "main", ""),
            ("elsewhere", "main", ""),
            ("here", "other_name", "\n\n" if "globals()" in files["main"] else MORE),
        ):
            module = loaded(tmp_path / str(values.index(value)) / folder, written(files, value), main, above)
            source = source_of(module)
            keys.append(source.hash())
            kernel: Any = source
            record = Specialization(kernel.fn, kernel.signature, kernel.constants, kernel.attrs, {})
            served.append(SpecializationRecord(record, find_backend(TARGET), {}).key)
            texts.append(text_of(source))
            assert is_portable(portable_text(source.fn)) and is_portable(source.text(Writer(is_whole=True)))
    assert len({*texts[:3]}) == len({*texts[3:]}) == 1
    assert texts[0] != texts[3], "the case says nothing"
    assert keys[0] != keys[3], "another kernel would be taken for this one"
    assert len({*keys[:3]}) == len({*keys[3:]}) == 1, "the key depends on the location"
    assert len({*served[:3]}) == len({*served[3:]}) == 1 and served[0] != served[3], "of entries in bundles"


LIBRARY = (
    "import os\n__version__ = '1.0'\nN = int(os.environ['TEST_KEYS'])\n"
    "@tilework.constexpr_function\ndef held():\n    return N\n"
    "@tilework.constexpr_function\ndef read():\n    return int(os.environ['TEST_KEYS'])\n"
    "class Above:\n    M = N\nclass Settings(Above):\n    pass\nsettings = Settings()\n"
    "@tilework.constexpr_function\ndef of_class():\n    return Settings.M\n"
    "@tilework.constexpr_function\ndef of_object():\n    return settings.M\n"
)
IMPORTED = "import library_of_test as lib\n"
SETTINGS = {
    "a global of a library's function": kernel(IMPORTED, "lib.held()"),
    "a variable of the environment that it reads": kernel(IMPORTED, "lib.read()"),
    "a member of its class": kernel(IMPORTED, "lib.of_class()"),
    "a member of the class of its object": kernel(IMPORTED, "lib.of_object()"),
    "a value in a library's module": host(IMPORTED, "lib.N"),
    "a value in a class of a library": host(IMPORTED, "lib.Settings.M"),
    "a value of an object of a library": host(IMPORTED + "held = lib.Settings()\n", "held.M"),
    "a value that a program adds to the language": kernel("", "tl.of_test"),
    "a value of the language in a method": host("", "tl.of_test.value"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_libraries_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of a library does not say what the environment or the program has set in it."""
    keys, texts = [], []
    for value in ("1", "1", "2"):
        folder = tmp_path / str(len(keys))
        sys.modules.pop("library_of_test", None)
        with monkeypatch.context() as patch:
            patch.setenv("TEST_KEYS", value)
            patch.setattr(tl, "of_test", tl.constexpr(int(value)), raising=False)
            patch.syspath_prepend(folder / "site-packages")
            sys.path.insert(0, "")
            module = loaded(folder, {**SETTINGS[name], "site-packages/library_of_test": LIBRARY})
            keys.append(source_of(module).hash())
            texts.append(text_of(source_of(module)))
            assert is_portable(portable_text(module.k))
    assert texts[0] == texts[1] != texts[2] and keys[0] == keys[1] != keys[2]


UNSEEN = {
    "eval": host("N = §\n", "eval('N')"),
    "a file": host("", "len(open(__file__).read()) + §"),
    "an import by name": host("", "__import__('cfg').N", cfg="N = §\n"),
    "a module that is not there yet": host("def f():\n    import cfg\n    return cfg.N\n", "f()", cfg="N = §\n"),
    "a table of modules": host("import sys, cfg\n", "sys.modules['cfg'].N", cfg="N = §\n"),
    "a frame": host("import sys\nN = §\n", "sys._getframe().f_globals['N']"),
    "globals of a function": host("N = §\ndef f():\n    return f.__globals__['N']\n", "f()"),
    "globals under another name": host("N = §\ng = globals\n", "g()['N']"),
    "classes below": host(
        "class A:\n    pass\nclass B(A if § == 1 else object):\n    pass\n", "len(A.__subclasses__())"
    ),
    "a variable whose name is computed": host(
        "import os\nos.environ['TEST_KEYS'] = '§'\n", "int(os.environ['TEST_' + str('KEYS')])"
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_reads_something_unseen_is_no_other_process_s(name: str, tmp_path: Path) -> None:
    keys = []
    for value in ("1", "2"):
        module = loaded(tmp_path / value, written(UNSEEN[name], value))
        assert "cfg" not in sys.modules or "table" in name, "a key has imported something"
        keys.append(source_of(module).hash())
        assert not is_portable(portable_text(module.k))
    assert keys[0] != keys[1]


def made(base: type, members: dict[str, Any], **values: Any) -> Any:
    """Return an object of a new class, with attributes."""
    found = type("Made", (base,), members)()
    for name, value in values.items():
        setattr(found, name, value)
    return found


def with_default(number: int) -> Any:
    """A dataclass whose fields have defaults."""
    fields = [("x", int, number), ("y", list, dataclasses.field(default_factory=list))]
    return dataclasses.make_dataclass("D", fields)


MANY = {
    "deque": (collections.deque([1], 3), collections.deque([1], 4)),
    "defaultdict": (collections.defaultdict(int), collections.defaultdict(float)),
    "OrderedDict": (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)),
    "Counter": (collections.Counter("ab"), collections.Counter("abb")),
    "slots of a dict": (made(dict, {"__slots__": ("x",)}, x=1), made(dict, {"__slots__": ("x",)}, x=2)),
    "subclass of str": (type("S", (str,), {})("a"), type("S", (str,), {})("b")),
    "subclass of float": (type("F", (float,), {})(1), type("F", (float,), {})(2)),
    "Decimal": (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    "Fraction": (fractions.Fraction(1, 3), fractions.Fraction(1, 2)),
    "date": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "bytearray": (bytearray(b"a"), bytearray(b"b")),
    "array": (array.array("d", [0.0]), array.array("d", [-0.0])),
    "complex": (complex(0.0, 0.0), complex(0.0, -0.0)),
    "generic alias": (list[int], list[float]),
    "union": (int | str, int | float),
    "slice": (slice(1), slice(True)),
    "pattern": (re.compile("a"), re.compile("a", re.I)),
    "dtype": (np.dtype([("a", "f4")]), np.dtype([("b", "f4")])),
    "structure": (np.zeros(1, "i4,i4")[0], np.ones(1, "i4,i4")[0]),
    "ufunc": (np.add, np.multiply),
    "scalar type": (np.float32, np.float64),
    "slot wrapper": (int.__add__, int.__mul__),
    "method wrapper": ((1).__add__, (2).__add__),
    "method of a string": ("a".join, "b".join),
    "getter": (operator.attrgetter("a"), operator.attrgetter("b")),
    "partialmethod": (functools.partialmethod(print, 1), functools.partialmethod(print, 2)),
    "dataclass": (dataclasses.make_dataclass("D", [("x", int)])(1), dataclasses.make_dataclass("D", [("x", int)])(2)),
    "default of a dataclass": (with_default(1), with_default(2)),
    "named tuple": (collections.namedtuple("P", "x y")(1, 2), collections.namedtuple("P", "y x")(1, 2)),
    "enum": (enum.Enum("E", "A B")["A"], enum.Enum("E", "B A")["A"]),
    "flag": (enum.Flag("F", "A B")(3), enum.Flag("F", "A B")(1)),
    "exception": (ValueError("a"), ValueError("b")),
    "iterator": (iter([1]), iter([2])),
    "numbers in code": (lambda: (1, True), lambda: (1, 1)),
    "zeros in code": (lambda: 0.0, lambda: -0.0),
    "a set in code": (lambda x: x in {1, 2}, lambda x: x in {1, 3}),
    "parameters": (lambda *a: a, lambda a: a),
}


@pytest.mark.parametrize("name", MANY)
def test_objects_are_their_state(name: str) -> None:
    one, other = MANY[name]
    assert portable_text(one) != portable_text(other) and is_portable(portable_text((one, other)))


@pytest.mark.parametrize("make", [threading.Lock, object, lambda: memoryview(b"a"), lambda: (n for n in (1, 2))])
def test_what_cannot_be_copied_is_itself(make: Any) -> None:
    assert not is_portable(portable_text([make()])) and portable_text(make()) != portable_text(make())


OTHER_PROCESS = """
import sys
from tests.runtime import test_portable_keys as tests
from tilework.language.constant_text import portable_text
for name, pair in tests.MANY.items():
    print(name, [portable_text(value) for value in pair])
"""


def test_other_processes_have_the_same_texts() -> None:
    """Texts are equal in processes with other hashes of strings, by which Python orders sets."""
    texts = []
    for seed in ("1", "2"):
        done = run_python("-c", OTHER_PROCESS, env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.splitlines())
    assert texts[0] == texts[1] and len(texts[0]) == len(MANY)


def test_what_contains_an_object_that_is_itself_is_no_other_process_s(tmp_path: Path) -> None:
    files = host("import threading\nL = threading.Lock()\n", "int(L.locked())")
    source = source_of(loaded(tmp_path, files))
    assert not is_portable(portable_text(source.fn)) and source.hash() == source.hash()
