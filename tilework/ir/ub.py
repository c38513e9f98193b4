"""The `ub` dialect: values that are undefined."""

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.traits import IsTerminator, Pure

from tilework.ir.create import create_op
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.fields import prop_def, result_def, traits_def


@irdl_attr_definition
class PoisonAttr(ParametrizedAttribute):
    """Poison in every bit: ``#ub.poison``."""

    name = "ub.poison"


POISON = PoisonAttr()


class PoisonOp(Op):
    """No particular value: ``%x = ub.poison : i32``."""

    name = "ub.poison"
    value = prop_def(Attribute, default_value=POISON)
    result = result_def()
    form = "{}(? <$value>) : type($result)"
    traits = traits_def(Pure())


class UnreachableOp(Op):
    """A point that control never reaches."""

    name = "ub.unreachable"
    form = "{}"
    traits = traits_def(IsTerminator())


UB = Dialect("ub", dialect_ops("ub"), [PoisonAttr])


def poison(type: Attribute, loc: LocationAttr) -> PoisonOp:
    """``ub.poison : type``."""
    return create_op(PoisonOp, (), (type,), loc)
