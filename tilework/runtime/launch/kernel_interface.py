"""What kernels, autotuners and heuristics have in common: they are launched over a grid."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tilework import knobs
from tilework.knobs.hooks import SERVERS, above
from tilework.language.bound_launch import BoundLaunch
from tilework.runtime.launch.wrappers import MockTensor


class KernelInterface:
    """Anything that is launched over a grid: kernels, and autotuners and heuristics around them.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out + tl.program_id(0), 1)

        assert isinstance(kernel, tilework.KernelInterface)
    """

    run: Callable[..., Any]

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]` is a function of the kernel's arguments."""
        run = self.run

        def launch(*args: Any, **kwargs: Any) -> Any:
            return run(*args, grid=grid, warmup=False, **kwargs)

        return launch

    def bind(self, *args: Any, grid: Any, **kwargs: Any) -> Callable[..., Any]:
        """A launch with these arguments, which is called with only what changes: `launch(x=x2)`; see `bound_launch.py`."""
        return BoundLaunch(self, getattr(self, "arg_names", ()), args, grid, kwargs)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments without launching; returns the compiled kernel.

        A dtype of torch stands for a tensor of it: ``kernel.warmup(torch.float32, 64, grid=(1,))``.

        Example:
            @tilework.jit
            def kernel(out):
                tl.store(out, 7)

            out = np.zeros(1, np.int32)
            compiled = kernel.warmup(out, grid=(1,))
            assert out[0] == 0 and "tt.store" in compiled.asm["ttir"]
        """
        return self.run(*(MockTensor.wrap_dtype(arg) for arg in args), grid=grid, warmup=True, **kwargs)

    def explain(
        self, *args: Any, grid: Any = None, target: Any = None, why: Any = None, device: Any = None, **kwargs: Any
    ) -> Any:
        """Why it is compiled again, slow, tuned as it is, or different on other devices: print what this returns.

            print(add.explain())                                  everything that this process has compiled of it
            print(add.explain(x, y, out, n, BLOCK=256))           what a launch like this needs
            print(add.explain(x, y, out, n, BLOCK=256, grid=(4,), why="different"))

        See docs/explain.md.

        Example:
            @tilework.jit
            def kernel(out, n):
                tl.store(out, n)

            kernel[(1,)](np.zeros(1), 3)
            assert "kernel" in str(kernel.explain())
        """
        asked = {"grid": grid, "target": target, "why": why, "device": device}
        return above("explain").explain_kernel(self, args, kwargs, **asked)

    def explore(
        self,
        *args: Any,
        grid: Any = None,
        target: str | None = None,
        output: Any = None,
        open: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Open a page about what was compiled of this kernel, or about a launch with these arguments; the path of the page.

            kernel.explore()                                   every version that has been compiled
            kernel.explore(x, y, n, BLOCK=1024, grid=(4,))     launched with these, with the emulator's counters by line
            kernel.explore(target="cuda:90")                   what it would be on that GPU

        See docs/explorer.md; `output` is where the page goes, `open=False` opens no browser.

        Example:
            import pathlib, tempfile

            @tilework.jit
            def kernel(out, n):
                tl.store(out, n)

            kernel[(1,)](np.zeros(1), 3)
            with tempfile.TemporaryDirectory() as folder:
                page = kernel.explore(output=pathlib.Path(folder, "kernel.html"), open=False)
                assert "tl.store" in pathlib.Path(page).read_text()
        """
        return above("explore").explore_kernel(self, args, kwargs, grid, target, output, open)


def by_python(fn: Any, grid: Any) -> Callable[..., Any]:
    """`fn[grid]` while there is no native launcher yet: a launch through Python, then whatever `fn[grid]` is by then."""
    launches = [partial(fn.run, grid=grid, warmup=False)]

    def launch(*args: Any, **kwargs: Any) -> Any:
        return (launches.pop() if launches else fn[grid])(*args, **kwargs)

    return launch


LAUNCHED: list[bool] = []  # not empty once a process has asked for a launch


def first_binder(fn: Any) -> Callable[[Any], Callable[..., Any]] | None:
    """What makes `fn[grid]`, if it is the first launch of a process that a bundle serves: the result comes sooner through Python, and
    the second launch loads the native launcher."""
    if LAUNCHED or not (SERVERS or knobs.runtime.bundle):
        return None
    LAUNCHED.append(True)
    return partial(by_python, fn)


def native_bound(kernel: Any, bound: BoundLaunch) -> Callable[..., Any]:
    """A bound launch in machine code, where that is possible."""
    for _ in range(2):  # the first one may be a launch through Python, while the launcher is being compiled
        bind = getattr(kernel[bound.grid], "__self__", None)
    if type(bind) is not tuple:
        return bound
    from tilework.runtime.launch.native_machine import make_bound  # lazily: only native launches need it

    return make_bound(bind[0], bound)
