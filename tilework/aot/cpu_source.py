"""The header of a kernel for CPUs, whose object file C programs link (`targets/cpu/standalone.py`).

    TTresult add_HASH_SUFFIX(TTstream stream, TTptr x, TTptr out, int32_t n);

The stream says who runs the programs of the grid: NULL is the calling thread, one after the other; else a `TTthreads` whose function
`run` calls back from as many threads as it likes. `tt_pthreads_run` is one that starts threads and joins them at each launch.
"""

from collections.abc import Sequence

from tilework.aot.grid import GridError, parse_expression
from tilework.aot.signature import POINTER, Entry, Names, passed, values_of
from tilework.targets.cpu.run.interface import Interface
from tilework.targets.cpu.run.machine_code import num
from tilework.targets.cpu.standalone import CODES, Argument, GridCode

INCLUDES = """#ifndef TT_CPU_INCLUDES
#define TT_CPU_INCLUDES

#include <stddef.h>
#include <stdint.h>

typedef void *TTptr;
typedef int32_t TTresult; /* {codes}; a number above 0 is an assert that failed: NAME_error_string says which */
enum {{ {values} }};

/* Who runs the programs of a launch. `run` calls `work(launch)` any number of times, in any threads, at most once at a time
   in each, and returns when all those calls have returned. `threads` is how many there are, for the size of portions. */
typedef struct TTthreads {{
  int32_t threads;
  int32_t reserved;
  void (*run)(struct TTthreads *self, void (*work)(void *launch), void *launch);
}} TTthreads;
typedef TTthreads *TTstream; /* NULL: the calling thread runs all programs, one after the other */

#endif

#if defined(TT_PTHREADS) && !defined(TT_PTHREADS_RUN)
#define TT_PTHREADS_RUN

#include <pthread.h>

struct tt_pthreads_call {{
  void (*work)(void *launch);
  void *launch;
}};

static void *tt_pthreads_main(void *data) {{
  struct tt_pthreads_call *call = (struct tt_pthreads_call *)data;
  call->work(call->launch);
  return NULL;
}}

/* Starts threads - 1 threads (256 at most), works too, and joins them: TTthreads four = {{4, 0, tt_pthreads_run}}; */
static inline void tt_pthreads_run(TTthreads *self, void (*work)(void *launch), void *launch) {{
  struct tt_pthreads_call call = {{work, launch}};
  pthread_t others[256];
  int32_t wanted = self->threads - 1 < 256 ? self->threads - 1 : 256, started = 0;
  while (started < wanted && pthread_create(&others[started], NULL, tt_pthreads_main, &call) == 0)
    started++;
  work(launch);
  while (started > 0)
    pthread_join(others[--started], NULL);
}}

#endif
"""
HEADER = """{includes}
#ifdef __cplusplus
extern "C" {{
#endif

/* {settings}, for the CPU {arch} */
void unload_{name}(void);
void load_{name}(void);
const char *{name}_error_string(TTresult code);
// tt-linker: {name}:{full}:{algorithm}
// tt-linker-hints: {name}:{hints}
// tt-linker-target: cpu
TTresult {name}(TTstream stream{parameters});

#ifdef __cplusplus
}}
#endif
"""


def includes() -> str:
    """What the headers of all kernels begin with."""
    values = ", ".join(f"TT_{name} = {code}" for name, code in CODES.items())
    return INCLUDES.format(codes=", ".join(f"TT_{name}" for name in CODES), values=values)


def header_text(entries: Sequence[Entry], names: Names, arch: str, interface: Interface) -> str:
    """The header of a compiled kernel."""
    settings = [*(f"{entry.name}={entry.value}" for entry in values_of(entries)), *names.settings]
    words = {key: word.replace(POINTER, "TTptr") for key, word in names.words(entries).items()}
    shown = ", ".join(settings).replace("*/", "* /")
    return HEADER.format(includes=includes(), settings=shown, arch=arch or "host", **words)


def arguments_of(entries: Sequence[Entry]) -> list[Argument]:
    return [Argument(entry.c_name, entry.c_type.replace(POINTER, "void *")) for entry in passed(entries)]


def grid_code(parts: Sequence[str], args: Sequence[Argument]) -> GridCode:
    """What writes the arithmetic of a grid; names that are no integer arguments are an error now."""
    expressions = [parse_expression(part) for part in parts]
    integers = {arg.name for arg in args if arg.is_integer}
    for expression in expressions:
        if unknown := sorted(expression.names() - integers):
            known = ", ".join(sorted(integers)) or "none"
            raise GridError(
                f"grid {expression.text!r}: {unknown[0]} is no integer argument of the kernel; it has {known}"
            )
    return lambda b, values: [expression.emit(b, values, num) for expression in expressions]
