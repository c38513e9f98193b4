"""Give a layout to the tensors of TTGIR that have none yet.

    %0 = ttg.local_load %m : !ttg.memdesc<..> -> tensor<64xf32>       ==>       .. -> tensor<64xf32, #blocked>

The same rules as `convert-triton-to-tritongpu`, for a module that says already what it is for; in the partitions of a
`ttg.warp_specialize` tensors are spread over the warps of the partition. Stage: TTGIR. Cost: two walks.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.transforms.passes import module_pass
from tilework.transforms.ttg.convert_triton_to_tritongpu import Machine, lay_out


@module_pass("relayout-tritongpu")
def relayout_tritongpu(module: ModuleOp) -> None:
    lanes, ctas = threads_per_warp(module), num_ctas(module)

    def machine_of(inner: Operation) -> Machine:
        return Machine(num_warps(inner), lanes, ctas)

    lay_out(module, machine_of)
