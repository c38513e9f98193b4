"""The common base of kernels, autotuners and heuristics: objects that are launched over a grid."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tilework.language.grid import BoundLaunch
from tilework.process.events import above
from tilework.runtime.launch.python.wrappers import MockTensor


class KernelInterface:
    """The base of everything that is launched over a grid: kernels, and the autotuners and heuristics that wrap them.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out + tl.program_id(0), 1)

        assert isinstance(kernel, tilework.KernelInterface)
    """

    run: Callable[..., Any]

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]` is a function of the kernel's arguments."""
        return self.in_python(grid)

    def in_python(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]` without the native launcher."""
        run = self.run

        def launch(*args: object, **kwargs: object) -> Any:
            return run(*args, grid=grid, warmup=False, **kwargs)

        return launch

    def bind(self, *args: object, grid: object, **kwargs: object) -> Callable[..., Any]:
        """Prepare a launch with these arguments, which is then called with only those that change: `launch(x=x2)`; see
        `language/grid.py`.
        """
        return BoundLaunch(self, getattr(self, "arg_names", ()), args, grid, kwargs)

    def warmup(self, *args: object, grid: object, **kwargs: object) -> Any:
        """Compile for these arguments without launching, and return the compiled kernel.

        A torch dtype stands for a tensor of that dtype: ``kernel.warmup(torch.float32, 64, grid=(1,))``.

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
        self,
        *args: object,
        grid: object = None,
        target: object = None,
        why: object = None,
        device: object = None,
        **kwargs: object,
    ) -> Any:
        """Explain why the kernel is recompiled, slow, tuned as it is, or different on other devices. Print the result.

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
        requested = {"grid": grid, "target": target, "why": why, "device": device}
        return above("explain").explain_kernel(self, args, kwargs, **requested)

    def explore(
        self,
        *args: object,
        grid: object = None,
        target: str | None = None,
        output: object = None,
        open: bool = True,
        **kwargs: object,
    ) -> Any:
        """Open a page about the compiled versions of this kernel, or about a launch with these arguments, and return
        the path of the page.

            kernel.explore()                                   every version that has been compiled
            kernel.explore(x, y, n, BLOCK=1024, grid=(4,))     launched with these, with the emulator's counters by line
            kernel.explore(target="cuda:90")                   what it would be on that GPU

        See docs/explorer.md. `output` is the path to write the page to; `open=False` opens no browser.

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

    def by_python(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]` while there is no native launcher yet: launch in Python once, then use the current
        `kernel[grid]`.
        """
        launches = [partial(self.run, grid=grid, warmup=False)]

        def launch(*args: object, **kwargs: object) -> Any:
            return (launches.pop() if launches else self[grid])(*args, **kwargs)

        return launch
