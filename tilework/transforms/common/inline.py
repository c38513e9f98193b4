"""Replace calls by the body of the function they call.

    tt.func @kernel(%x: f32) {
      %y = tt.call @square(%x)            %y = arith.mulf %x, %x    loc(callsite(... at ...))
      ...                          ==>    ...
    tt.func private @square(%a: f32) -> f32 {
      %0 = arith.mulf %a, %a
      tt.return %0

Functions are processed bottom up: a callee is canonicalized, and its own calls inlined, before it is copied (or, at its
last call, moved). A callee of several blocks is spliced into the caller with `cf.br`; that is possible only where
blocks may branch, so inside `scf` or `tt.reduce` such a call is kept. Calls to `noinline` functions and to functions
that are still being processed (recursion) are kept as well. Private functions without calls are dropped.
Stage: TTIR to TTIR. Cost: a canonicalization per function, and a copy per call.
"""

from collections import Counter

from xdsl.dialects.builtin import CallSiteLoc, IntegerAttr, LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region

from tilework.ir import tt
from tilework.ir.cf import make_br
from tilework.ir.create import clone_region, create_attr
from tilework.ir.functions import callee_of, callees, functions_by_name, is_private, modules, ops_in_order
from tilework.ir.rewrite import erase_op, move_before, replace_all_uses, replace_values
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.passes import module_pass

MAX_ROUNDS = 4  # canonicalization can make a callee of several blocks, or one in a branch, inlinable


@module_pass("inline")
def inline(module: ModuleOp) -> None:
    for table in modules(module):
        Inliner(table).run()


class Inliner:
    """The functions of a module, how often each is called, and which are done."""

    def __init__(self, module: ModuleOp) -> None:
        self.functions = functions_by_name(module)
        self.calls = Counter(name for function in self.functions.values() for name in callees(function))
        self.done: set[str] = set()
        self.entered: set[str] = set()
        self.call_sites = CallSites()

    def run(self) -> None:
        for name, function in tuple(self.functions.items()):
            if not is_private(function):
                self.process(name)
        for name, function in tuple(self.functions.items()):
            if is_private(function) and not self.calls[name]:
                self.drop(name)
            else:
                self.process(name)

    def process(self, name: str) -> None:
        """Inline into the function `name`, after its callees."""
        if name in self.entered:
            return
        self.entered.add(name)
        function = self.functions[name]
        for callee in callees(function):
            if callee in self.functions:
                self.process(callee)
        for _ in range(MAX_ROUNDS):
            canonicalize(function)
            if not self.inline_calls(function):
                break
        self.done.add(name)

    def inline_calls(self, function: Operation) -> bool:
        """Inline the calls in `function` that can be. True if there was one."""
        changed = False
        for op in ops_in_order(*function.regions):
            if type(op) is tt.CallOp and self.inline_call(op):
                changed = True
        return changed

    def inline_call(self, call: Operation) -> bool:
        name = callee_of(call)
        callee = self.functions.get(name)
        if callee is None or name not in self.done or not can_inline(call, callee):
            return False
        self.calls[name] -= 1
        is_last = is_private(callee) and not self.calls[name]
        body = callee.regions[0] if is_last else clone_region(callee.regions[0])
        if not is_last:
            self.calls.update(callees(callee))
        self.call_sites.move(body, call.location)
        splice(call, body)
        if is_last:
            self.functions.pop(name)
            erase_op(callee)
        return True

    def drop(self, name: str) -> None:
        """Erase a private function without callers."""
        function = self.functions.pop(name)
        self.calls.subtract(callees(function))
        erase_op(function)


def can_inline(call: Operation, callee: Operation) -> bool:
    """Return True if `callee` may replace `call`: several blocks only fit where a block may branch."""
    noinline = callee.attributes.get("noinline")
    if isinstance(noinline, IntegerAttr) and noinline.value.data:
        return False
    body = callee.regions[0]
    if body.first_block is None:
        return False
    return body.first_block is body.last_block or type(call.parent_op()) is tt.FuncOp


class CallSites:
    """Call-site locations, one object for each pair: nested ones are expensive to hash, so the ids are the key."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], CallSiteLoc] = {}  # a value keeps both locations of its key alive

    def at(self, callee: LocationAttr, caller: LocationAttr) -> LocationAttr:
        """``callsite(callee at caller)``; what was inlined into the callee is ``callsite(inner at callsite(callee at
        caller))``."""
        if isinstance(callee, CallSiteLoc):
            inner, outer = callee.callee, callee.caller
            assert isinstance(inner, LocationAttr) and isinstance(outer, LocationAttr)
            callee, caller = inner, self.at(outer, caller)
        key = (id(callee), id(caller))
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = create_attr(CallSiteLoc, callee=callee, caller=caller)
        return found

    def move(self, body: Region, caller: LocationAttr) -> None:
        """Give every op and block argument of `body` the location ``callsite(its own at caller)``."""
        for op in ops_in_order(body):
            op.location = self.at(op.location, caller)
            for region in op.regions:
                self.move_arguments(region, caller)
        self.move_arguments(body, caller)

    def move_arguments(self, region: Region, caller: LocationAttr) -> None:
        for block in region.blocks:
            for argument in block.args:
                argument.location = self.at(argument.location, caller)


def splice(call: Operation, body: Region) -> None:
    """Replace `call` by the blocks of `body`."""
    block, entry = call.parent, body.first_block
    assert block is not None and entry is not None, "a call is in a block, and its callee has a body"
    replace_values(entry.args, call.operands)
    if entry is body.last_block:
        end = move_body(call, entry)
        replace_values(call.results, end.operands)
    else:
        rest = continue_in_new_block(call)
        body.detach_block(entry)
        body.move_blocks_before(rest)
        end = move_body(call, entry)
        block.insert_op_before(branch_for_return(end, rest), call)
        blocks_between(block, rest)
    end.drop_all_references()
    erase_op(call)


def move_body(call: Operation, entry: Block) -> Operation:
    """Move the ops of `entry` in front of `call`; return its terminator, detached."""
    *ops, end = entry.ops
    end.detach()
    move_before(call, *ops)
    return end


def continue_in_new_block(call: Operation) -> Block:
    """Split the block behind `call`; the new block takes the results of the call as arguments."""
    block, following = call.parent, call.next_op
    assert block is not None and following is not None, "a call is no terminator"
    rest = block.split_before(following, arg_types=[result.type for result in call.results])
    for result, argument in zip(call.results, rest.args, strict=True):
        argument.location = call.location
        argument.name_hint = result.name_hint
        replace_all_uses(result, argument)
    return rest


def branch_for_return(end: Operation, rest: Block) -> Operation:
    """`end` itself, or for ``tt.return %v`` the branch ``cf.br ^rest(%v)``."""
    if type(end) is not tt.ReturnOp:
        return end.clone()
    return make_br(rest, tuple(end.operands), end.location)


def blocks_between(first: Block, rest: Block) -> None:
    """Replace the returns of the inlined blocks, which are between `first` and `rest`, by branches to `rest`."""
    block = first.next_block
    while block is not None and block is not rest:
        end = block.last_op
        if type(end) is tt.ReturnOp:
            block.insert_op_before(branch_for_return(end, rest), end)
            erase_op(end)
        block = block.next_block
