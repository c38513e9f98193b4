"""`python -m triton.tools.link`: see `tilework/aot/link.py`."""

from tilework.aot.link import (
    HeaderParser,
    KernelLinkerMeta,
    LinkerError,
    desc,
    gen_signature,
    gen_signature_with_full_args,
    main,
    make_algo_decls,
    make_default_algo_kernel,
    make_func_pointers,
    make_get_num_algos_decl,
    make_get_num_algos_def,
    make_global_decl,
    make_kernel_hints_dispatcher,
    make_kernel_load_def,
    make_kernel_meta_const_dispatcher,
)

__all__ = [
    "HeaderParser",
    "KernelLinkerMeta",
    "LinkerError",
    "desc",
    "gen_signature",
    "gen_signature_with_full_args",
    "main",
    "make_algo_decls",
    "make_default_algo_kernel",
    "make_func_pointers",
    "make_get_num_algos_decl",
    "make_get_num_algos_def",
    "make_global_decl",
    "make_kernel_hints_dispatcher",
    "make_kernel_load_def",
    "make_kernel_meta_const_dispatcher",
]

if __name__ == "__main__":
    main()
