# lit tests: test/<room>/*.mlir and *.test (one tool, text in, text out), and
# test/e2e/*.test (from a model to a trained one). Both use what follows.
#
# Words a RUN line may use besides lit's own:
#   fsdp-opt fsdp-run fsdp-translate fsdpc fsdpc-tokenize linear mlp ...   from this build
#   FileCheck not count split-file                          from LLVM
#   %{root} %{build} %{golden} %{python} %{nvcc} %{cuda_include}   paths
#   %{plain}                                                a filter that leaves out the structure of ops, for
#                                                           tests of something else
# Features: nvcc (this build has the CUDA toolkit), nvcc-installed (an installed compiler finds one), cudnn (NVIDIA's cuDNN lies beside it, or in CUDNN_FOLDER), gpu (a device is there), mpirun, torchrun, tsan (g++ has ThreadSanitizer),
# races (kernels are built with their accesses visible: clang, no sanitizer),
# digits (scripts/digits has been run into build/.../data/digits; ./check does),
# chromium, node (the browser, or node without one, is installed), all (./check --all runs), linear mlp gpt2 llama shard_map (the model stands in examples/).

import os
import shutil
import subprocess

import lit.formats
import lit.main

config.name = "fsdpc"
# Several of these run at a time, and would all write one file of test times while others read it. ctest has its own.
lit.main.record_test_times = lambda tests, configuration: None
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "lint", "golden", "Inputs", "inputs"]
config.test_source_root = os.path.join(config.fsdp_source, "test")
config.test_exec_root = os.path.join(config.fsdp_build, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.fsdp_bin, config.llvm_bin, os.environ.get("PATH", "")]
)
# Open MPI refuses root and more ranks than cores unless told.
for name in (
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "OMPI_MCA_rmaps_base_oversubscribe",
):
    config.environment[name] = "1"
for name in ("CUDA_HOME", "CUDACXX", "FSDP_TEST_ALL", "FSDP_TEST_FRESH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# No bytecode beside the sources of tests: it would be another input of cached results (test/cached_result.py), and their folder stays as git has it.
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
# By name: ccache would follow the XDG_CACHE_HOME that a test sets, into an empty folder.
if shutil.which("ccache"):
    folder = subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True, check=True)
    config.environment["CCACHE_DIR"] = folder.stdout.strip()

# Our tools are given by whole path: one that was not built fails by name, and no
# older one installed elsewhere is picked up.
for tool in ("fsdp-opt", "fsdp-run", "fsdp-translate", "fsdpc", "fsdpc-log", "fsdpc-tokenize"):
    path = os.path.join(config.fsdp_bin, tool)
    config.substitutions.append((rf"(?<![\w/.-]){tool}(?![\w.-])", path))
config.substitutions += [
    (r"%\{root\}", config.fsdp_source),
    (r"%\{build\}", config.fsdp_build),
    (r"%\{golden\}", os.path.join(config.fsdp_source, "test", "golden")),
    (r"%\{python\}", config.python + " -S"),
    (
        r"%\{plain\}",
        r"sed -E '/fsdp\.(structure|gathers|reduces) = /{"
        r"s/fsdp\.(structure = #fsdp\.structure<[^>]*>|(gathers|reduces) = @[^,}]*)(, )?//g;s/, \}/}/;s/ \{\}//}'",
    ),
]


def has_device():
    """Whether a CUDA driver answers and has a device."""
    smi = shutil.which("nvidia-smi")
    if not smi:
        return False
    return subprocess.run([smi, "-L"], capture_output=True, timeout=60).returncode == 0


# Only what this build compiles with: without it (-DFSDP_NVCC=) there are no kernels, whatever is on the disk.
if os.path.exists(config.fsdp_nvcc):
    config.available_features.add("nvcc")
    # Without a driver cuDNN loads the toolkit's stub of it.
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(config.fsdp_nvcc))), "lib64")
    cudnn, libcuda = os.environ.get("CUDNN_FOLDER", libraries), os.path.join(libraries, "stubs", "libcuda.so")
    if os.path.exists(os.path.join(cudnn, "libcudnn.so.9")) and os.path.exists(libcuda):
        config.available_features.add("cudnn")
    config.substitutions += [
        (r"%\{nvcc\}", config.fsdp_nvcc),
        (r"%\{cuda_include\}", os.path.join(os.path.dirname(os.path.dirname(config.fsdp_nvcc)), "include")),
        (r"%\{cudnn\}", cudnn),
        (r"%\{libcuda\}", libcuda),
    ]
if shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc"):
    config.available_features.add("nvcc-installed")
if has_device():
    config.available_features.add("gpu")
if shutil.which("g++") and shutil.which("setarch"):
    said = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=False)
    if os.path.isabs(said.stdout.strip()):
        config.available_features.add("tsan")
if os.path.exists(os.path.join(config.fsdp_build, "test", "unit", "emulator-race-tests")):
    config.available_features.add("races")
    if config.fsdp_race_kernels:
        config.available_features.add("race-kernels")
# A Python with torch and transformers, which nothing else needs.
if os.environ.get("TRANSFORMERS_PYTHON"):
    config.available_features.add("transformers")
    config.substitutions.append((r"%\{transformers\}", os.environ["TRANSFORMERS_PYTHON"]))
# PyTorch's launcher, which one test starts programs with.
torchrun = os.environ.get("TORCHRUN") or shutil.which("torchrun")
if torchrun:
    config.available_features.add("torchrun")
    config.substitutions.append((r"%\{torchrun\}", torchrun))
for browser in ("chromium", "node"):
    if shutil.which(browser):
        config.available_features.add(browser)
if shutil.which("mpirun"):
    config.available_features.add("mpirun")
if os.path.exists(os.path.join(config.fsdp_build, "data", "digits", "train.safetensors")):
    config.available_features.add("digits")
if os.environ.get("FSDP_TEST_ALL"):
    config.available_features.add("all")
# A model that has a folder in examples/ must be built; its tests are not skipped then.
for model in ("linear", "mlp", "gpt2", "llama", "shard_map"):
    if os.path.exists(os.path.join(config.fsdp_source, "examples", model, "CMakeLists.txt")) or (
        os.path.exists(os.path.join(config.fsdp_source, "examples", model + ".cpp"))
    ):
        config.available_features.add(model)

# No test waits for ever. Run from ctest, lit has an external limit (time_limit.py), which depends
# on the load of the machine and lists what runs. lit's own is a thread for each line, which lit may
# wait for in vain (a lost wake-up of Python 3.11); it is for lit by hand, and needs psutil to stop
# a test with its children.
if lit_config.params.get("time_limit") != "outside":
    try:
        import psutil  # noqa: F401

        lit_config.maxIndividualTestTime = 1200
    except ImportError:
        lit_config.note("no python3-psutil: tests have no time limit of their own")
