"""`tilework emulate`: arguments, dumps, counters, findings, errors of one line."""

from pathlib import Path

import numpy as np
import pytest

from tilework.tools.cli import main

FOLDER = Path(__file__).parent.parent / "emulator"
SCAN = str(FOLDER / "programs" / "scan.ptx")
PLANTED = str(FOLDER / "planted" / "missing_barrier.ptx")


def test_it_runs_a_kernel_and_saves_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "x.npy", tmp_path / "out.npy"
    x = np.arange(256, dtype=np.int32)[::-1].copy()
    np.save(source, x)
    options = [
        "--kernel",
        "doubling_scan",
        "--block",
        "256",
        "--arg",
        f"i32:256:{source}",
        "--arg",
        "i32:16x16",
        "--dump",
        f"1={out}",
        "--dump",
        "0",
    ]
    assert main(["emulate", SCAN, *options]) == 0
    np.testing.assert_array_equal(np.load(out).reshape(-1), np.cumsum(x))
    assert capsys.readouterr().out.startswith("argument 0: int32 256\n")


def test_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "emulate",
                SCAN,
                "--kernel",
                "warp_scan",
                "--block",
                "64",
                "--arg",
                "f32:64:random",
                "--arg",
                "f32:64",
                "--counters",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "scan.cu:20" in out and out.splitlines()[-1].startswith("total")


def test_it_checks(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--block", "128", "--arg", "f32:128:range", "--arg", "f32:128:1.5", "--check", "--seed", "4"]
    assert main(["emulate", PLANTED, "--kernel", "bug", *options]) == 1
    captured = capsys.readouterr()
    assert "race: thread" in captured.err and "missing_barrier.cu:8" in captured.err and not captured.out
    assert main(["emulate", PLANTED, "--kernel", "fixed", *options]) == 0
    assert capsys.readouterr().out == "fixed: nothing found\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([SCAN], "has 3 kernels; choose one with --kernel: doubling_scan, warp_scan, tree_scan"),
        ([SCAN, "--kernel", "none"], "no kernel 'none'"),
        (["missing.ptx"], "missing.ptx"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f31:4"], "'f31' is no type"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f32:a"], "'a' is no shape"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f32:4:much"], "'much' is not zeros"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f32:0"], "not possible"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "i32=x"], "'x' is no value"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "i8=300"], "'300' is no value"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "hex=zz"], "hex"),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f32:4"], "takes 2 arguments and is given 1"),
        ([SCAN, "--kernel", "warp_scan", "--grid", "1,b"], "--grid 1,b"),
        (
            [SCAN, "--kernel", "warp_scan", "--block", "4096", "--arg", "f32:4", "--arg", "f32:4"],
            "a block of 4096 threads",
        ),
        ([SCAN, "--kernel", "warp_scan", "--arg", "f32:4", "--dump", "1"], "argument 1 is not an array"),
        (
            [SCAN, "--kernel", "warp_scan", "--arg", "f32:4", "--arg", "f32:64"],
            "4 bytes at element 4 of argument 0 (f32:4) are outside of it: it has elements 0 to 3",
        ),
        (
            [
                SCAN,
                "--kernel",
                "doubling_scan",
                "--block",
                "256",
                "--arg",
                "i32:256",
                "--arg",
                "i32:256",
                "--max-instructions",
                "50",
            ],
            "endless",
        ),
    ],
)
def test_what_is_wrong_is_one_line(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", *options]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("tilework emulate: error: ") and captured.err.count("\n") == 1
    assert says in captured.err


def test_a_file_that_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.cubin"
    file.write_bytes(b"\x7fELF\xff\xfe\x00")
    assert main(["emulate", str(file)]) == 1
    assert "is not text" in capsys.readouterr().err


AMD = """
define amdgpu_kernel void @twice(ptr addrspace(1) %x, i32 %n) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %p, align 4
  %w = mul i32 %v, %n
  store i32 %w, ptr addrspace(1) %p, align 4
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "target-cpu"="gfx942" "amdgpu-flat-work-group-size"="1,64" }
"""


def test_text_for_amd_gpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.llir"
    file.write_text(AMD)
    command = ["emulate", str(file), "--arg", "i32:64:range", "--arg", "i32=3", "--check"]
    assert main([*command, "--dump", f"0={tmp_path / 'x.npy'}"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), 3 * np.arange(64))
    assert capsys.readouterr().out == "twice: nothing found\n"
    command[3] = "i32:60:range"
    assert main(command) == 1 and "bad access" in capsys.readouterr().err
    command[3:] = ["i32:64:range", "--arg", "i32=3", "--counters"]
    assert main(command) == 0
    total = capsys.readouterr().out.splitlines()[-1].split()
    assert total[0] == "total" and total[3] == "8" and total[4] == "100%", "64 ints of 4 bytes are read and written"


COMPILED = """//
// Generated by LLVM NVPTX Back-End
//
.version 8.0
.target sm_80
.address_size 64
.visible .entry shift(.param .u64 x, .param .u64 y, .param .s32 by, .param .u64 scratch, .param .u64 profile)
{directive}
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [by];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd3, [scratch];
    st.global.u32 [%rd3], %r1;
    add.s32 %r3, %r1, %r2;
    mad.wide.s32 %rd4, %r3, 4, %rd1;
    ld.global.u32 %r3, [%rd4];
    mad.wide.s32 %rd4, %r1, 4, %rd2;
    st.global.u32 [%rd4], %r3;
    ret;
}
"""


@pytest.mark.parametrize("directive", [".reqntid 64", ".maxntid 64, 1, 1"])
def test_compiled_kernels_need_neither_block_nor_scratch(
    directive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "shift.ptx", tmp_path / "y.npy"
    file.write_text(COMPILED.replace("{directive}", directive))
    arguments = ["--arg", "i32:65:range", "--arg", "i32:64", "--arg", "i32=1", "--dump", f"1={out}"]
    assert main(["emulate", str(file), *arguments]) == 0
    np.testing.assert_array_equal(np.load(out), np.arange(1, 65))
    assert "scratch memory is filled in for argument 3 and 4" in capsys.readouterr().err
    assert main(["emulate", str(file), *arguments[:2]]) == 1
    assert "shift takes 5 arguments and is given 1" in capsys.readouterr().err


@pytest.mark.parametrize("by", [1, 60, 5000, -1, -3000])
def test_an_access_past_an_array_names_its_argument(
    by: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shift.ptx"
    file.write_text(COMPILED.replace("{directive}", ".reqntid 64"))
    options = ["--arg", "i32:64", "--arg", "i32:64", "--arg", f"i32={by}"]
    assert main(["emulate", str(file), *options]) == 1
    first = by if by < 0 or by >= 64 else 64
    says = f"4 bytes at element {first} of argument 0 (i32:64) are outside of it: it has elements 0 to 63"
    assert says in capsys.readouterr().err
