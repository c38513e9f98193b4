"""`ttg` ops that copy global memory to shared memory in the background (``cp.async``).

%a = ttg.async_copy_global_to_local %ptrs, %buffer mask %m : ...     start
%b = ttg.async_commit_group tokens %a                                all since the last commit are one group
%c = ttg.async_wait %b {num = 2 : i32}                               at most two groups are still under way
%x = ttg.local_load %buffer token %c : ...
"""

from functools import cache

from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import BOOL_LIKE, I1_PROPERTY, I32_PROPERTY, PTR_LIKE, TENSOR, TensorSize, default_prop
from tilework.ir.declare import Op
from tilework.ir.tt.memory_ops import cache_prop, evict_prop, loaded_type, mask_type, verify_mask
from tilework.ir.ttg.memdesc_types import MEMDESC, TOKEN
from tilework.ir.ttg.shared_memory_ops import require_mutable, verify_copy


@cache
def copied_mask_type(pointers: Attribute) -> Attribute:
    return mask_type(loaded_type(pointers))


class AsyncCopyGlobalToLocalOp(Op):
    """Start copying elements from pointers to shared memory.

    ``%t = ttg.async_copy_global_to_local %p, %m mask %k other %o {contiguity = 8 : i32} : tensor<...> -> <64x64xf16, ...>``

    `contiguity` is how many elements at least lie next to each other, in memory and in the buffer.
    """

    name = "ttg.async_copy_global_to_local"
    src = operand_def(PTR_LIKE)
    dst = operand_def(MEMDESC)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(TENSOR)
    cache = cache_prop()
    evict = evict_prop()
    is_volatile = default_prop(I1_PROPERTY, False, "isVolatile")
    contiguity = default_prop(I32_PROPERTY, 1)
    token = result_def(TOKEN)
    form = (
        "$src, $dst(? mask $mask)(? other $other)(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : "
        "type($src) -> bare($dst)"
    )
    infer = {"mask": (copied_mask_type, "src"), "other": (loaded_type, "src")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        loaded = loaded_type(self.src.type)
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(loaded, self.dst.type)
        verify_mask(self, self.mask, loaded)
        if self.other is not None and self.other.type != loaded:
            raise VerifyException(f"{self.name} of {loaded} cannot take {self.other.type} as other")


class AsyncCommitGroupOp(Op):
    """All copies since the last commit are one group: ``%g = ttg.async_commit_group tokens %a, %b``."""

    name = "ttg.async_commit_group"
    tokens = var_operand_def(TOKEN)
    token = result_def(TOKEN)
    form = "(? tokens $tokens) {}"


class AsyncWaitOp(Op):
    """Wait until at most `num` groups are under way: ``%t = ttg.async_wait %g {num = 2 : i32}``."""

    name = "ttg.async_wait"
    tokens = var_operand_def(TOKEN)
    num = prop_def(I32_PROPERTY)
    token = result_def(TOKEN)
    form = "(? $tokens) {}"

    def verify_(self) -> None:
        if self.num.value.data < 0:
            raise VerifyException(f"ttg.async_wait for {self.num.value.data} groups: the number is not negative")
