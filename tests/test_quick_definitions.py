"""Classes that are defined quickly are the same classes."""

import copy
import dataclasses
import gc
import inspect
import re
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from tilework.quick_definitions import quick_definitions
from tilework.quick_methods import template

CLASS = """
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Place:
    row: int
    column: int = 7
    names: tuple = field(default_factory=tuple, compare=False)

@dataclass(frozen=True)
class Named(Place):
    name: str = ""
"""


def defined(module: str, text: str = CLASS) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": module}
    sys.modules[module] = type(sys)(module)
    try:
        exec(text, scope)
    finally:
        del sys.modules[module]
    return scope


def test_methods_are_compiled_when_they_are_called() -> None:
    with quick_definitions():
        place, named = (defined("tilework.somewhere")[name] for name in ("Place", "Named"))
    assert place.__init__.__code__ is named.__init__.__code__  # both wait
    later = place.__init__
    assert place(3) == place(3, 7, ("x",)) != place(4)
    assert place.__init__ is not later and place.__init__.__qualname__ == "Place.__init__"
    assert place.__repr__.__code__ is not place.__init__.__code__  # this one waits still
    assert repr(named(3, name="n")) == "Named(row=3, column=7, names=(), name='n')"
    assert hash(place(3)) == hash(place(3)) and dataclasses.replace(place(3), row=1) == place(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        place(3).row = 4
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'row'"):
        named()


KINDS = """
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar

class Plain:
    other = 1
    def __post_init__(self, start=0):
        object.__setattr__(self, "seen", start)

@dataclass({options})
class Base(Plain):
    first: int
    count: ClassVar[int] = 5
    second: "list[int]" = field(default_factory=list)
    third: int = field(default=3, repr=False)
    {own}

@dataclass({options})
class Derived(Base):
    second: tuple = ()
    other: int
    start: InitVar[int] = 4
    _: KW_ONLY
    last: str = "z"

class Further(Derived):
    extra = 9
"""
OWN = (
    "",
    "def __eq__(self, other): return True",
    "def __hash__(self): return 7",
    "def __repr__(self): return 'me'",
    "__hash__ = None",
)
OPTIONS = (
    "",
    "frozen=True",
    "eq=False",
    "eq=False, frozen=True",
    "init=False",
    "repr=False",
    "kw_only=True",
    "order=True",
    "slots=True",
)


OBJECTS = """one; one == two; one != two; one == Base(first=1); hash(one) == hash(two); setattr(one, "first", 8); setattr(one, "another", 8)
delattr(one, "third"); vars(one); one.seen; replace(two, first=6, start=1); asdict(two); copy(two) == two"""
CLASSES = """cls.third; cls.second; cls.__match_args__; cls.__dataclass_params__; [(f.name, f.type, f.default, f.kw_only) for f in fields(cls)]
str(signature(cls)); cls(); cls(1, 2, 3, 4, 5); cls(1, 2); is_dataclass(cls); cls.__hash__ is None; '__hash__' in vars(cls); cls.__eq__.__qualname__"""


def behaviour(module: str, text: str) -> list[str]:
    """What classes do, in words."""
    names: dict[str, Any] = {**vars(dataclasses), "copy": copy.copy, "signature": inspect.signature, "__name__": module}
    sys.modules[module] = type(sys)(module)
    said: list[str] = []

    def ask(questions: str, **more: Any) -> None:
        for question in questions.replace("\n", ";").split(";"):
            try:
                said.append(repr(eval(question.strip(), names | more)))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")

    try:
        exec(text, names)
        kinds = [names[name] for name in ("Further", "Derived", "Base")]
        for kind in kinds:
            try:
                ask(OBJECTS, one=kind(first=1), two=kind(first=1))
            except TypeError as error:
                said.append(str(error))
        for kind in kinds:
            ask(CLASSES, cls=kind)
    finally:
        del sys.modules[module]
    return [re.sub("0x[0-9a-f]+", "", word.replace(module, "m")) for word in said]


@pytest.mark.parametrize("options", OPTIONS)
def test_quick_classes_behave_like_others(options: str) -> None:
    for own in OWN:
        text = KINDS.format(options=options, own=own)
        expected = behaviour("somebody.else", text)
        with quick_definitions():
            found = behaviour("tilework.somewhere", text)
        assert found == expected, own


def test_fields_are_found_by_whoever_comes_first() -> None:
    with quick_definitions():
        scopes = [defined("tilework.somewhere") for _ in range(4)]
    derived = [
        dataclasses.make_dataclass("Later", [("z", int, 0)], bases=(scope["Named"],), frozen=True) for scope in scopes
    ]
    assert [field.name for field in dataclasses.fields(scopes[1]["Named"])] == ["row", "column", "names", "name"]
    assert dataclasses.is_dataclass(scopes[2]["Place"]) and scopes[3]["Place"].__match_args__ == (
        "row",
        "column",
        "names",
    )
    assert derived[0](1, z=2).z == 2


def test_threads_may_use_a_class_before_its_fields_are_known() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong: list[object] = []
    try:
        for _ in range(20):
            with quick_definitions():
                named = defined("tilework.somewhere")["Named"]
            start = threading.Barrier(4)

            def use(named: Any = named, start: threading.Barrier = start) -> None:
                start.wait()
                try:
                    if named(1) != named(1) or hash(named(2)) != hash(named(2)) or len(dataclasses.fields(named)) != 4:
                        wrong.append(named)
                except Exception as error:
                    wrong.append(error)

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_classes_of_others_and_the_collector_are_as_before(request: pytest.FixtureRequest) -> None:
    create, thresholds = getattr(dataclasses, "_create_fn", None), (700, 10, 10)
    request.addfinalizer(partial(gc.set_threshold, *gc.get_threshold()))
    gc.set_threshold(*thresholds)
    with quick_definitions():
        place = defined("somebody.else")["Place"]
        with quick_definitions():
            pass
        assert gc.get_threshold() != thresholds
    assert str(inspect.signature(place)).startswith("(row: int, column: int = 7")
    assert (getattr(dataclasses, "_create_fn", None), gc.get_threshold()) == (create, thresholds)


def test_what_was_put_off_reads_writes_and_verifies() -> None:
    program = """
from tilework.ir.deferred_definitions import deferred_definitions
with deferred_definitions():
    from xdsl.dialects.arith import Arith
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
context = Context()
context.load_dialect(Arith), context.load_dialect(Builtin)
text = str(Parser(context, "%0 = arith.constant 1 : i32  %1 = arith.addi %0, %0 : i32").parse_module())
assert "%1 = arith.addi %0, %0 : i32" in text, text
from tilework.ir.deferred_definitions import UNDEFINED
from xdsl.dialects import arith
from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr, StringAttr, UnitAttr, f32, i32
from xdsl.ir import OpTraits
from xdsl.utils.exceptions import VerifyException

def refuses(call):
    try:
        call()
    except VerifyException as error:
        return str(error)

waiting = len(UNDEFINED)
assert waiting > 20
one, two = (arith.ConstantOp.create(result_types=[type], properties={"value": IntegerAttr(1, i32)}) for type in (i32, f32))
sum = arith.MuliOp.create(operands=[one.results[0], one.results[0]], result_types=[i32])
assert sum.lhs is one.results[0] and sum.result is sum.results[0] and len(UNDEFINED) == waiting - 1
late = arith.SubfOp.create(operands=[one.results[0], two.results[0]], result_types=[f32])
assert "SubfOp" not in str(refuses(late.verify)) and refuses(late.verify) and not refuses(sum.verify)
compared = arith.CmpiOp.create(operands=[one.results[0]] * 2, result_types=[i32])
compared.predicate = IntegerAttr(1, 64)
assert compared.properties["predicate"] == IntegerAttr(1, 64) and "predicate" not in vars(compared)
assert isinstance(arith.RemSIOp.traits, OpTraits) and len(UNDEFINED) == waiting - 3
definition = arith.RemSIOp.get_irdl_definition()
assert [name for name, _ in definition.operands] == ["lhs", "rhs"] and arith.RemSIOp in UNDEFINED
rest = arith.RemSIOp.create(operands=[one.results[0]] * 2, result_types=[i32])
assert rest.lhs is one.results[0] and arith.RemSIOp.get_irdl_definition() is definition and arith.RemSIOp not in UNDEFINED
assert "arith.remui" in str(arith.RemUIOp.create(operands=[one.results[0]] * 2, result_types=[i32]))
assert "line" in refuses(lambda: FileLineColLoc(StringAttr("f"), UnitAttr(), UnitAttr()))
from xdsl.dialects.builtin import AnyFloat, AnyFloatConstr, BoolAttr, FloatAttr, IndexType, IntegerType, TensorType, f64
assert FloatAttr(1.0, f32).get_type() is f32 and refuses(lambda: FloatAttr.new([StringAttr(""), f32]))
from xdsl.irdl import AnyAttr, AnyOf, BaseAttr, EqAttrConstraint
from tilework.ir.deferred_definitions import any_of
tensors = TensorType.constr(AnyFloat)
for given in (
    (AnyFloat, IntegerType), (IntegerType, IndexType, IntegerType), (AnyFloatConstr, AnyAttr()), (tensors, TensorType),
    (TensorType, tensors), (tensors, TensorType.constr(IntegerType), AnyFloatConstr), (f32, f64, IntegerType), (f32,),
    (EqAttrConstraint(f32), BaseAttr(IndexType), f64), (AnyFloatConstr | BaseAttr(IntegerType), AnyFloat, f32.__class__),
):
    assert any_of(*given) == AnyOf.get(*given), given
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_methods_are_compiled_once_for_each_number_of_fields() -> None:
    texts = [
        f"@dataclass(frozen=True)\nclass C{n}:\n  a{n}: int\n  b{n}: int = {n}\n  c{n}: object = None" for n in range(4)
    ]
    with quick_definitions():
        classes = defined("tilework.somewhere", "\n".join(["from dataclasses import dataclass", *texts]))
    before = template.cache_info().misses
    one, *others = (classes[f"C{n}"](n) for n in range(4))
    assert all(each == copy.copy(each) and hash(each) == hash(copy.copy(each)) and each != one for each in others)
    assert vars(others[2]) == {"a3": 3, "b3": 3, "c3": None} and str(inspect.signature(classes["C3"])).count("3") == 4
    assert template.cache_info().misses - before <= 3
