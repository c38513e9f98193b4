"""Every knob and every way to set one."""

import ast
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING, cache_invalidating_env_vars

PACKAGE = Path(knobs.__file__).parent.parent
GROUPS = ("build", "redis", "cache", "compilation", "autotuning", "runtime", "language", "nvidia", "amd", "proton")

TABLE = """
build.cc                                        CC                                  None
build.cxx                                       CXX                                 None
build.cudacrt_path                              TRITON_CUDACRT_PATH                 None
build.cudart_path                               TRITON_CUDART_PATH                  None
redis.key_format                                TRITON_REDIS_KEY_FORMAT             'triton:{key}:{filename}'
redis.host                                      TRITON_REDIS_HOST                   'localhost'
redis.port                                      TRITON_REDIS_PORT                   6379
cache.manager_class                             TRITON_CACHE_MANAGER                None
cache.remote_manager_class                      TRITON_REMOTE_CACHE_BACKEND         None
cache.max_size                                  TILEWORK_CACHE_MAX_SIZE             4294967296
cache.exact_locations                           TILEWORK_EXACT_LOCATIONS            False
cache.compile_wait                              TILEWORK_COMPILE_WAIT               300
cache.url                                       TILEWORK_CACHE_URL                  None
cache.key                                       TILEWORK_CACHE_KEY                  None
cache.key_file                                  TILEWORK_CACHE_KEY_FILE             None
cache.trust_server                              TILEWORK_CACHE_TRUST_SERVER         False
cache.connect_timeout                           TILEWORK_CACHE_CONNECT_TIMEOUT      0.2
cache.timeout                                   TILEWORK_CACHE_TIMEOUT              2.0
compilation.override                            TRITON_KERNEL_OVERRIDE              False
compilation.dump_ir                             TRITON_KERNEL_DUMP                  False
compilation.dump_ir_extract_di_local_variables  LLVM_EXTRACT_DI_LOCAL_VARIABLES     False
compilation.store_binary_only                   TRITON_STORE_BINARY_ONLY            False
compilation.always_compile                      TRITON_ALWAYS_COMPILE               False
compilation.use_ir_loc                          USE_IR_LOC                          None
compilation.enable_asan                         TRITON_ENABLE_ASAN                  False
compilation.disable_line_info                   TRITON_DISABLE_LINE_INFO            False
compilation.front_end_debugging                 TRITON_FRONT_END_DEBUGGING          False
compilation.allow_non_constexpr_globals         TRITON_ALLOW_NON_CONSTEXPR_GLOBALS  False
compilation.performance_remarks                 TILEWORK_PERFORMANCE_REMARKS        False
compilation.fpsan_homomorphic_casts             TRITON_FPSAN_HOMOMORPHIC_CASTS      False
autotuning.cache                                TRITON_CACHE_AUTOTUNING             False
autotuning.print                                TRITON_PRINT_AUTOTUNING             False
autotuning.workers                              TILEWORK_COMPILE_WORKERS            None
autotuning.worker_timeout                       TILEWORK_WORKER_TIMEOUT             300
autotuning.save                                 TILEWORK_SAVE_TUNING                False
autotuning.part                                 TILEWORK_TUNING_PART                None
runtime.interpret                               TRITON_INTERPRET                    False
runtime.override_arch                           TRITON_OVERRIDE_ARCH                None
runtime.num_threads                             TILEWORK_NUM_THREADS                None
runtime.device                                  TILEWORK_DEVICE                     None
runtime.native_launch                           TILEWORK_NATIVE_LAUNCH              True
runtime.explain                                 TILEWORK_EXPLAIN                    None
runtime.record                                  TILEWORK_RECORD                     None
runtime.bundle                                  TILEWORK_BUNDLE                     None
runtime.bundle_key                              TILEWORK_BUNDLE_KEY                 None
runtime.bundle_key_file                         TILEWORK_BUNDLE_KEY_FILE            None
runtime.bundle_digest                           TILEWORK_BUNDLE_DIGEST              None
runtime.no_jit                                  TILEWORK_NO_JIT                     False
runtime.progress                                TILEWORK_PROGRESS                   True
runtime.cpu_dots                                TILEWORK_CPU_DOTS                   True
language.fp32_default                           TRITON_F32_DEFAULT                  None
language.default_fp_fusion                      TRITON_DEFAULT_FP_FUSION            True
language.strict_triton                          TILEWORK_STRICT_TRITON              False
nvidia.dump_nvptx                               NVPTX_ENABLE_DUMP                   False
nvidia.disable_ptxas_opt                        DISABLE_PTXAS_OPT                   False
nvidia.ptxas_options                            PTXAS_OPTIONS                       None
nvidia.mock_ptx_version                         TRITON_MOCK_PTX_VERSION             None
nvidia.dump_ptxas_log                           TRITON_DUMP_PTXAS_LOG               False
nvidia.libdevice_path                           TRITON_LIBDEVICE_PATH               None
nvidia.libcuda_path                             TRITON_LIBCUDA_PATH                 None
nvidia.ptxas_timeout                            TILEWORK_PTXAS_TIMEOUT              3600
nvidia.auto_tma                                 TILEWORK_AUTO_TMA                   None
nvidia.plain_dots                               TILEWORK_PLAIN_DOTS                 False
nvidia.warp_specialize                          TILEWORK_WARP_SPECIALIZE            None
nvidia.persistent_programs                      TILEWORK_PERSISTENT_PROGRAMS        True
amd.use_buffer_ops                              AMDGCN_USE_BUFFER_OPS               True
amd.use_buffer_atomics                          AMDGCN_USE_BUFFER_ATOMICS           True
amd.buffer_ops_analyze_small_tensor_range       AMDGCN_ANALYZE_SMALL_TENSOR_RANGE   False
amd.dump_amdgcn                                 AMDGCN_ENABLE_DUMP                  False
amd.libhip_path                                 TRITON_LIBHIP_PATH                  None
amd.use_block_pingpong                          TRITON_HIP_USE_BLOCK_PINGPONG       None
amd.use_in_thread_transpose                     TRITON_HIP_USE_IN_THREAD_TRANSPOSE  None
amd.use_async_copy                              TRITON_HIP_USE_ASYNC_COPY           None
amd.dump_mir                                    TRITON_DUMP_MIR                     None
amd.swap_mir                                    TRITON_SWAP_MIR                     None
amd.swap_mir_enable_misched                     TRITON_SWAP_MIR_ENABLE_MISCHED      False
amd.use_coexec_scheduler                        TRITON_HIP_USE_COEXEC_SCHEDULER     False
amd.use_expert_scheduling                       TRITON_HIP_USE_EXPERT_SCHEDULING    False
amd.scalarize_packed_fops                       AMDGCN_SCALARIZE_PACKED_FOPS        False
amd.software_fp8                                TILEWORK_SOFTWARE_FP8               False
proton.disable                                  TRITON_PROTON_DISABLE               False
proton.cupti_lib_dir                            TRITON_CUPTI_LIB_PATH               ''
proton.enable_nvtx                              TRITON_ENABLE_NVTX                  True
proton.enable_hw_trace                          TRITON_ENABLE_HW_TRACE              False
proton.profile_buffer_size                      TRITON_PROFILE_BUFFER_SIZE          67108864
proton.profile_metric_buffer_size               TRITON_PROFILE_METRIC_BUFFER_SIZE   None
"""
ROWS = [tuple(line.split(None, 2)) for line in TABLE.strip().splitlines()]
TOOLS = ("ptxas", "ptxas_blackwell", "cuobjdump", "nvdisasm")
FOLDERS = {"dir": ("TRITON_CACHE_DIR", "cache"), "dump_dir": ("TRITON_DUMP_DIR", "dump"),
           "override_dir": ("TRITON_OVERRIDE_DIR", "override")}  # fmt: skip


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test with no variable and no knob set, and restore everything afterwards."""
    with ExitStack() as stack:
        for name in GROUPS:
            group = getattr(knobs, name)
            stack.enter_context(group.scope())
            for key in group.variables:
                monkeypatch.delenv(key, raising=False)
            group.reset()
        yield


def parts(path: str) -> tuple[knobs.base_knobs, str]:
    group, _, name = path.partition(".")
    return getattr(knobs, group), name


def sample(default: object) -> tuple[str, object]:
    """Return a text for a variable, and the value that the knob then has."""
    if isinstance(default, bool):
        return ("0", False) if default else ("1", True)
    if isinstance(default, float):
        return "0.25", 0.25
    return ("77", 77) if isinstance(default, int) else ("some text", "some text")


@pytest.mark.parametrize(("path", "key", "default"), ROWS)
def test_a_knob_is_its_default_its_variable_or_what_was_set(
    path: str, key: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, name = parts(path)
    assert getattr(group, name) == eval(default)
    assert group.knob_descriptors[name].key == key
    if (
        "class" in name
        or "pingpong" in name
        or "transpose" in name
        or name in ("num_threads", "workers", "auto_tma", "server", "use_async_copy", "profile_metric_buffer_size")
    ):
        return
    text, value = sample(eval(default))
    monkeypatch.setenv(key, text)
    assert getattr(group, name) == value
    monkeypatch.delenv(key)
    setattr(group, name, value)
    assert getattr(group, name) == value and os.environ[key] == text
    setattr(group, name, knobs.env)
    assert os.environ[key] == text and name not in vars(group)


def test_the_table_is_complete() -> None:
    known = {row[0] for row in ROWS} | {f"nvidia.{tool}" for tool in TOOLS} | {"cache.home_dir"}
    known |= {f"cache.{name}" for name in FOLDERS}
    assert known == {f"{group}.{name}" for group in GROUPS for name in getattr(knobs, group).knob_descriptors}


@pytest.mark.parametrize("text", ["1", "y", "Y", "yes", "YES", "on", "On", "true", "TRUE"])
def test_true(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_KERNEL_DUMP", text)
    assert knobs.compilation.dump_ir is True


@pytest.mark.parametrize("text", ["", "0", "n", "no", "off", "false", "2", "anything"])
def test_false(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", text)
    assert knobs.language.default_fp_fusion is False


@pytest.mark.parametrize("name", ["use_block_pingpong", "use_in_thread_transpose", "use_async_copy"])
def test_an_optional_bool_has_three_states(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = knobs.amd.knob_descriptors[name].key
    assert getattr(knobs.amd, name) is None
    for text, value in (("1", True), ("0", False)):
        monkeypatch.setenv(key, text)
        assert getattr(knobs.amd, name) is value
    setattr(knobs.amd, name, None)
    assert getattr(knobs.amd, name) is None and key not in os.environ


def test_a_number_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_REDIS_PORT", "many")
    with pytest.raises(RuntimeError, match="TRITON_REDIS_PORT=many: expected int"):
        _ = knobs.redis.port
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "6")
    assert knobs.runtime.num_threads == 6
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "all")
    with pytest.raises(RuntimeError, match="TILEWORK_NUM_THREADS=all"):
        _ = knobs.runtime.num_threads


@pytest.mark.parametrize(
    ("text", "size"),
    [("500000", 500000), ("64k", 65536), ("512M", 512 << 20), ("4G", 4 << 30), ("0", 0), ("1t", 1 << 40)],
)
def test_a_size_has_a_suffix(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE_MAX_SIZE", text)
    assert knobs.cache.max_size == size
    monkeypatch.delenv("TILEWORK_CACHE_MAX_SIZE")
    knobs.cache.max_size = text
    assert knobs.cache.max_size == size


@pytest.mark.parametrize("text", ["", "G", "4X", "-1", "1.5G"])
def test_a_size_must_be_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE_MAX_SIZE", text)
    with pytest.raises(RuntimeError, match="expected bytes"):
        _ = knobs.cache.max_size


def test_writing_reaches_the_environment() -> None:
    knobs.autotuning.cache = True
    assert os.environ["TRITON_CACHE_AUTOTUNING"] == "1"
    knobs.autotuning.cache = False
    assert os.environ["TRITON_CACHE_AUTOTUNING"] == "0"
    knobs.redis.port = 7
    assert os.environ["TRITON_REDIS_PORT"] == "7"
    knobs.build.cc = "clang"
    assert os.environ["CC"] == "clang"
    knobs.build.cc = None
    assert "CC" not in os.environ and knobs.build.cc is None


def test_writing_stays_here_when_propagation_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.autotuning.cache = True
    assert knobs.autotuning.cache and "TRITON_CACHE_AUTOTUNING" not in os.environ


@pytest.mark.parametrize("forget", [lambda: delattr(knobs.build, "cc"), lambda: setattr(knobs.build, "cc", knobs.env)])
def test_forgetting_a_value_returns_to_the_environment(forget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.build.cc = "clang"
    forget()
    assert knobs.build.cc == "gcc"
    forget()
    assert knobs.build.cc == "gcc"


def test_reset_and_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.redis.port, knobs.redis.host = 1, "there"
    other = knobs.redis.copy()
    assert other.knobs == {"key_format": "triton:{key}:{filename}", "host": "there", "port": 1}
    other.port = 2
    assert knobs.redis.port == 1 and other.port == 2
    assert knobs.redis.reset() is knobs.redis
    assert (knobs.redis.port, knobs.redis.host) == (6379, "localhost")


def test_a_copy_has_its_own_hooks() -> None:
    other = knobs.runtime.copy()
    other.launch_enter_hook.add(print)
    other.jit_cache_hook = print
    assert not knobs.runtime.launch_enter_hook.calls and knobs.runtime.jit_cache_hook is None


def test_a_scope_restores_values_variables_and_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_HOME", "/before")
    knobs.cache.dir = "/kept"
    with pytest.raises(ZeroDivisionError), knobs.cache.scope():
        knobs.cache.home_dir, knobs.cache.dir = "/inside", "/other"
        os.environ["TRITON_DUMP_DIR"] = "/dumps"
        assert os.environ["TRITON_HOME"] == "/inside"
        raise ZeroDivisionError
    assert (knobs.cache.home_dir, os.environ["TRITON_HOME"]) == ("/before", "/before")
    assert (knobs.cache.dir, os.environ["TRITON_CACHE_DIR"]) == ("/kept", "/kept")
    assert "TRITON_DUMP_DIR" not in os.environ
    chain = knobs.runtime.launch_enter_hook
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(print)
        knobs.runtime.jit_cache_hook = print
        knobs.runtime.debug = True
    assert knobs.runtime.launch_enter_hook is chain and not chain.calls
    assert knobs.runtime.jit_cache_hook is None and knobs.runtime.debug is False


def test_folders_follow_home(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.cache.home_dir == os.path.expanduser("~/")
    monkeypatch.setenv("TRITON_HOME", "/a")
    for name, (key, folder) in FOLDERS.items():
        assert getattr(knobs.cache, name) == f"/a/.triton/{folder}"
        monkeypatch.setenv(key, f"/named/{name}")
        assert getattr(knobs.cache, name) == f"/named/{name}"
        monkeypatch.delenv(key)
    other = knobs.cache.copy()
    monkeypatch.setattr(knobs, "propagate_env", False)
    other.home_dir = "/b"
    assert (other.dir, knobs.cache.dir) == ("/b/.triton/cache", "/a/.triton/cache")


def test_include_folders() -> None:
    assert knobs.build.backend_dirs == set() and knobs.build.impl is None
    knobs.build.cudacrt_path, knobs.build.cudart_path = "/crt", "/rt"
    assert knobs.build.backend_dirs == {"/crt", "/rt"}


class CacheManager:
    """A class that `env_class` accepts because of its name."""


class Mine(CacheManager):
    class Inner(CacheManager):
        """Found through its outer class."""


def test_a_class_is_named_by_module_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_managers", sys.modules[__name__])
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "some_managers:Mine")
    assert knobs.cache.manager_class is Mine
    knobs.cache.manager_class = CacheManager
    assert knobs.cache.manager_class is CacheManager
    knobs.cache.manager_class = "some_managers:Mine.Inner"
    assert knobs.cache.manager_class is Mine.Inner


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "isn't of the form MODULE:CLASS"),
        ("", "isn't of the form MODULE:CLASS"),
        ("no_such_module:X", "No module named"),
        ("os:no_such_class", "no attribute"),
        ("os:PathLike", "not of type 'CacheManager'"),
        ("os:getcwd", "not of type 'CacheManager'"),
    ],
)
def test_a_wrong_class_is_an_error(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_MANAGER", text)
    with pytest.raises(RuntimeError, match=f"TRITON_CACHE_MANAGER.*{re.escape(words)}|{re.escape(words)}"):
        _ = knobs.cache.manager_class


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_the_named_one_if_it_runs_or_the_newest(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = name.replace("_blackwell", "")
    key = knobs.nvidia.knob_descriptors[name].key
    assert key == f"TRITON_{name.upper()}_PATH"
    old = program(tmp_path / "path" / binary, "Cuda compilation tools, release 12.4, V12.4.99")
    new = program(tmp_path / "toolkit" / "bin" / binary, "Cuda compilation tools, release 12.10, V12.10.1")
    named = program(tmp_path / "named", "release 11.8, V11.8.2")
    broken = program(tmp_path / "broken", "no idea")
    monkeypatch.setattr(cuda_tools, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}/bin{os.pathsep}/usr/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    cuda_tools.newest.cache_clear()
    tool = getattr(knobs.nvidia, name)
    assert (tool.path, tool.version) == (new, "12.10")
    for value, path in ((named, named), (broken, new), (str(tmp_path / "absent"), new), (old, old)):
        monkeypatch.setenv(key, value)
        assert getattr(knobs.nvidia, name).path == path
    monkeypatch.delenv(key)
    setattr(knobs.nvidia, name, named)
    assert getattr(knobs.nvidia, name) == knobs.nvidia.knobs[name] == cuda_tools.NvidiaTool(named, "11.8")
    setattr(knobs.nvidia, name, cuda_tools.NvidiaTool(old, "12.4"))
    assert os.environ[key] == old and getattr(knobs.nvidia, name).version == "12.4"
    cuda_tools.newest.cache_clear()


def test_a_tool_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(cuda_tools, "find_spec", lambda _: None)
    cuda_tools.newest.cache_clear()
    with pytest.raises(RuntimeError, match=r"Cannot find nvdisasm.*TRITON_NVDISASM_PATH"):
        _ = knobs.nvidia.nvdisasm
    assert knobs.nvidia.knobs["nvdisasm"] is None
    cuda_tools.newest.cache_clear()


def test_two_knobs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.runtime.debug is False and knobs.compilation.instrumentation_mode == ""
    monkeypatch.setenv("TRITON_DEBUG", "1")
    monkeypatch.setenv("TRITON_INSTRUMENTATION_MODE", "consan")
    assert knobs.runtime.debug is False and knobs.compilation.instrumentation_mode == ""
    knobs.refresh_knobs()
    assert knobs.runtime.debug is True and knobs.compilation.instrumentation_mode == "consan"


def test_hooks() -> None:
    assert knobs.runtime.jit_cache_hook is None and knobs.runtime.jit_post_compile_hook is None
    assert knobs.runtime.add_stages_inspection_hook is None and knobs.compilation.listener is None
    heard: list[tuple[str, object]] = []
    first, second = (lambda x: heard.append(("first", x))), (lambda x: heard.append(("second", x)))
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        for call in (first, second, first):
            chain.add(call)
    knobs.runtime.launch_enter_hook(1)
    knobs.runtime.launch_exit_hook(2)
    assert heard == [("first", 1), ("second", 1), ("second", 2), ("first", 2)]
    knobs.runtime.launch_enter_hook.remove(first)
    knobs.runtime.launch_enter_hook.remove(first)
    assert knobs.runtime.launch_enter_hook.calls == [second]
    assert isinstance(knobs.runtime.kernel_load_start_hook, knobs.HookChain)
    assert isinstance(knobs.runtime.kernel_load_end_hook, knobs.HookChain)


def test_a_hook_may_remove_itself() -> None:
    chain, heard = knobs.HookChain(), []
    once = lambda: (chain.remove(once), heard.append("once"))
    chain.add(once)
    chain.add(lambda: heard.append("always"))
    chain()
    chain()
    assert heard == ["once", "always", "always"]


def test_compile_times() -> None:
    times = knobs.CompileTimes(ir_initialization=1, lowering_stages=[("ttir", 2), ("llir", 3)], store_results=4)
    assert (times.total_lowering, times.total) == (5, 10)


def test_helper_classes_make_new_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    class my_knobs(knobs.base_knobs):
        text = knobs.env_str("MY_TEXT", "default")
        computed = knobs.env_str_callable_default("MY_COMPUTED", lambda: "computed")
        flag = knobs.env_bool("MY_FLAG", True)
        number = knobs.env_int("MY_NUMBER", 3)
        maybe = knobs.env_opt_str("MY_MAYBE")
        perhaps = knobs.env_opt_bool("MY_PERHAPS")
        manager = knobs.env_class("MY_MANAGER", "CacheManager")

    group = my_knobs()
    assert list(group.knob_descriptors) == ["text", "computed", "flag", "number", "maybe", "perhaps", "manager"]
    assert list(group.knobs.values()) == ["default", "computed", True, 3, None, None, None]
    assert knobs.env_nvidia_tool("nvcc").key == "TRITON_NVCC_PATH" and isinstance(my_knobs.flag, knobs.env_bool)
    with group.scope():
        group.number = 9
        assert os.environ["MY_NUMBER"] == "9"
    assert "MY_NUMBER" not in os.environ and group.number == 3


def test_variables_that_are_part_of_the_cache_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in CACHE_INVALIDATING:
        monkeypatch.delenv(key, raising=False)
    assert len(CACHE_INVALIDATING) == 46 and cache_invalidating_env_vars() == {}
    texts = {"DISABLE_LLVM_OPT": "on", "DISABLE_MMA_V3": "TRUE", "DISABLE_MMA_V5": "1", "NVPTX_ENABLE_DUMP": "0",
             "MLIR_ENABLE_DUMP": "off", "TRITON_ENABLE_ASAN": "False", "USE_IR_LOC": "ttgir", "MLIR_DUMP_PATH": "",
             "TRITON_HOME": "/unrelated"}  # fmt: skip
    for key, text in texts.items():
        monkeypatch.setenv(key, text)
    assert cache_invalidating_env_vars() == {
        "DISABLE_LLVM_OPT": "true", "DISABLE_MMA_V3": "true", "DISABLE_MMA_V5": "true", "MLIR_ENABLE_DUMP": "false",
        "NVPTX_ENABLE_DUMP": "false", "TRITON_ENABLE_ASAN": "false", "USE_IR_LOC": "ttgir",
    }  # fmt: skip


def test_a_knob_that_stays_here_is_part_of_the_cache_key_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.language.fp32_default = "ieee"
    assert cache_invalidating_env_vars()["TRITON_F32_DEFAULT"] == "ieee"


def test_a_knob_that_is_read_once_is_part_of_the_cache_key_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_TRITON_VERSION", "3.8.0")  # too late
    knobs.language.triton_version = "3.7.1"
    assert "TILEWORK_TRITON_VERSION" not in cache_invalidating_env_vars()
    knobs.language.triton_version = "3.6.0"
    assert cache_invalidating_env_vars()["TILEWORK_TRITON_VERSION"] == "3.6.0"


def test_only_this_package_reads_the_environment() -> None:
    """Only `knobs` reads settings; variables that a user's own functions read are a part of the key of their kernel."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv"}
    readers = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if names & set(used_of_os(path))}
    assert readers == {"knobs/__init__.py", "language/constant_text.py"}


def used_of_os(path: Path) -> Iterator[str]:
    """The names of the module `os` that a file uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            yield node.attr


def test_importing_loads_nothing_heavy() -> None:
    """Importing `knobs` loads only modules that are loaded anyway, and tables."""
    heavy = {"subprocess", "shutil", "re", "dataclasses", "inspect", "importlib.util", "pathlib"}
    code = (
        "import collections.abc, contextlib, importlib, typing, sys, types\n"
        "package = sys.modules['tilework'] = types.ModuleType('tilework')\n"
        f"package.__path__ = [{str(PACKAGE)!r}]\n"
        "before = set(sys.modules)\n"
        "importlib.import_module('tilework.knobs')\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & heavy
