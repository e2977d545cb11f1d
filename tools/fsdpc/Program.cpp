//===- Program.cpp - scheduled IR as a program: source or binary ----------===//

#include "tools/fsdpc/Program.h"

#include "codegen/Project.h"
#include "tools/fsdpc/Toolchain.h"
#include "tools/output/OutputFile.h"
#include "tools/output/TemporaryFolder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <thread>

namespace files = std::filesystem;
namespace ir = mlir::fsdp;

namespace fsdpc {

static ir::TargetKind targetOf(const Options &options) {
  return options.target == "cuda" ? ir::TargetKind::Cuda : ir::TargetKind::Cpu;
}

/// For the records of runs: the command that repeats the compilation, and the choices that readers
/// look for, given or not.
static std::string describeCompilation(const Options &options, const Compiler &compiler) {
  llvm::json::Object fields{{"name", llvm::json::fixUTF8(compiler.name)},
                            {"target", options.target},
                            {"strategy", options.pipeline.strategy},
                            {"precision", options.pipeline.precision},
                            {"reduce_precision", options.pipeline.reducePrecision},
                            {"accumulate", options.pipeline.accumulate}};
  if (!compiler.input.empty())
    fields["model_file"] = llvm::json::fixUTF8(compiler.input);
  return llvm::formatv("{0}", llvm::json::Value(std::move(fields))).str();
}

ir::PlanSource makeSource(mlir::ModuleOp module, const std::string &table,
                          const ir::ModelWork &work, const Options &options) {
  ir::PlanSource plan{module, table, work.flops};
  if (!options.machine.empty()) // otherwise the target machine is unknown
    plan.peakSeconds =
        work.secondsAtPeak(options.findMachine(ir::getMeshOp(module).getMesh().getNumRanks()));
  return plan;
}

ir::EmittedProgram emitProgram(llvm::ArrayRef<ir::PlanSource> plans, const Options &options,
                               const std::string &name, const Compiler &compiler) {
  ir::EmitOptions emit;
  emit.target = targetOf(options);
  emit.name = name;
  emit.communicator = options.communicator;
  emit.options = options.given;
  emit.compilation = describeCompilation(options, compiler);
  ir::EmittedProgram program;
  if (failed(ir::emitPlans(plans, emit, program)))
    throw Failure("the program was not written");
  return program;
}

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

/// Adds the sources in `name`, a folder that programs are built from, if `isWanted` of their path
/// in it.
static void addFolder(Files &content, const std::string &name,
                      const std::function<bool(const files::path &)> &isWanted) {
  const files::path folder = files::path(findRuntimeSources()) / name;
  static const std::set<std::string> extensions = {".h", ".def", ".cpp", ".cu", ".cmake", ".txt"};
  std::error_code error;
  for (const files::directory_entry &entry : files::recursive_directory_iterator(folder, error)) {
    files::path inside = entry.path().lexically_relative(folder);
    if (entry.is_regular_file() && extensions.count(entry.path().extension().string()) &&
        isWanted(inside))
      content[name + "/" + inside.generic_string()] = readFile(entry.path().string());
  }
  if (error)
    throw Failure("cannot read the runtime's folder '" + folder.string() + "': " + error.message());
}

/// True for files of runtime/ that only CUDA programs are built from.
static bool isOfCuda(const files::path &inside) {
  static const std::set<std::string> builds = {"Cuda.cmake", "CompileKernels.cmake",
                                               "CudaRuntime.h", "program/CudaArchitectures.def"};
  return llvm::is_contained(inside, files::path("cuda")) || builds.count(inside.generic_string());
}

void writeSource(ir::EmittedProgram program, const Options &options, const std::string &name) {
  Files content;
  content["CMakeLists.txt"] =
      ir::projectFile(program, name, targetOf(options), options.getCudaArchitectures());
  for (auto &[file, text] : program.files)
    content[file] = std::move(text);
  content["version.txt"] = readFile(findRuntimeSources() + "/version.txt");
  // runtime/CMakeLists.txt compiles base/ and tokenizer/; the CMake files in those folders are for
  // the compiler.
  addFolder(content, "base",
            [](const files::path &inside) { return inside.filename() != "CMakeLists.txt"; });
  addFolder(content, "tokenizer",
            [](const files::path &inside) { return inside.filename() != "CMakeLists.txt"; });
  addFolder(content, "runtime", [&](const files::path &inside) {
    return options.target == "cuda" || !isOfCuda(inside);
  });
  writeFolder(options.output, content);
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

/// Runs `commands` concurrently in `folder`, with their output in files there. Throws Failure with
/// the output of the first that fails.
static void runAtOnce(llvm::ArrayRef<ir::BuildCommand> commands, const std::string &launcher,
                      TemporaryFolder &place) {
  struct Running {
    llvm::sys::ProcessInfo process;
    std::string log;
  };
  const std::string &folder = place.path();
  std::vector<Running> all;
  for (const ir::BuildCommand &command : commands) {
    // Run inside the folder, so that a compiler cache sees no name of a temporary folder.
    // Its temporary files are there too, and are removed with the folder if it is killed.
    std::vector<std::string> words = {"-C",
                                      folder,
                                      "CCACHE_NOHASHDIR=1",
                                      "CCACHE_SLOPPINESS=time_macros,pch_defines",
                                      "CCACHE_PCH_EXTSUM=1",
                                      "TMPDIR=" + folder};
    const bool cached = !launcher.empty() && llvm::is_contained(command, "-c");
    if (cached)
      words.push_back(launcher);
    words.insert(words.end(), command.begin(), command.end());
    // With the list of files that were read, a cache that is told so (CCACHE_DEPEND) need not
    // preprocess.
    if (cached && files::path(command.front()).filename() != "nvcc")
      words.push_back("-MD");
    std::string log = folder + "/" + std::to_string(all.size()) + ".log";
    all.push_back({place.start(words, log), log});
  }
  std::string failure;
  for (Running &running : all) {
    llvm::sys::ProcessInfo done = llvm::sys::Wait(running.process, std::nullopt);
    place.removeProcess(running.process.Pid);
    if (done.ReturnCode != 0 && failure.empty())
      failure = "the generated program did not compile (keep it with --emit=source):\n" +
                readFile(running.log);
  }
  if (!failure.empty())
    throw Failure(failure);
}

/// As many at once as there are cores: a compiler takes one, and some hundred megabytes.
static void runAll(llvm::ArrayRef<ir::BuildCommand> commands, const std::string &launcher,
                   TemporaryFolder &place) {
  const size_t cores = std::max(2u, std::thread::hardware_concurrency());
  for (; !commands.empty(); commands = commands.drop_front(std::min(cores, commands.size())))
    runAtOnce(commands.take_front(std::min(cores, commands.size())), launcher, place);
}

/// Kernels of the runtime that its library does not hold for `architectures`. The library's PTX
/// would run on newer devices, but machine code was requested.
static std::vector<std::string> missingKernels(const Toolchain &toolchain,
                                               const ir::CudaArchitectures &architectures) {
  std::vector<std::string> missing;
  if (llvm::all_of(architectures,
                   [&](auto &one) { return llvm::is_contained(toolchain.architectures, one); }))
    return missing;
  std::error_code error;
  const files::path kernels = files::path(findRuntimeSources()) / "runtime" / "kernels" / "cuda";
  for (const files::directory_entry &entry : files::directory_iterator(kernels, error))
    if (entry.path().extension() == ".cu")
      missing.push_back(entry.path().string());
  if (error)
    throw Failure("cannot read the runtime's folder '" + kernels.string() +
                  "': " + error.message());
  llvm::sort(missing);
  return missing;
}

/// Adds the runtime's precompiled headers to the compilations, if this build has them: `Runtime`
/// are those of CPU programs, `Record` those of programs that print their actions, of the compiler
/// and the flags of the toolchain.
static void usePrecompiledHeaders(std::vector<ir::BuildCommand> &commands,
                                  const std::string &runtimeRoot, const std::string &name) {
  const std::string file = "/" + name + ".pch";
  if (!llvm::sys::fs::exists(findRuntimeSources() + file))
    return;
  for (ir::BuildCommand &command : commands)
    if (llvm::is_contained(command, "-c"))
      command.insert(command.begin() + 1,
                     {"-include-pch", runtimeRoot + file, "-Xclang", "-fno-pch-timestamp"});
}

void writeBinary(const ir::EmittedProgram &program, const Options &options,
                 const base::OutputPath &output) {
  const bool cuda = options.target == "cuda";
  TemporaryFolder folder;
  for (const auto &[file, text] : program.files)
    writeOutput(openOutput(folder.path() + "/" + file), text);

  ir::BuildPlaces places;
  places.sources = ".";
  // Under a name that does not depend on the compiler's location, so that a compiler cache works
  // across clones.
  places.runtimeRoot = "fsdpc";
  std::error_code error;
  const std::string link = folder.path() + "/" + places.runtimeRoot;
  files::create_directory_symlink(findRuntimeSources(), link, error);
  if (error)
    throw Failure("cannot make the link '" + link + "': " + error.message());
  places.target = targetOf(options);
  const Toolchain toolchain = options.record ? findRecordingToolchain()
                                             : findToolchain(places.target, options.communicator);
  places.toolchain = toolchain.program;
  if (cuda && !options.record) {
    places.architectures = options.getCudaArchitectures();
    places.runtimeKernels = missingKernels(toolchain, places.architectures);
  }
  places.output = folder.path() + "/program";
  places.record = options.record;
  std::vector<ir::BuildCommand> commands = ir::buildCommands(program, places);
  const char *other = std::getenv("CXX");
  if ((!cuda || options.record) && !(other && *other))
    usePrecompiledHeaders(commands, places.runtimeRoot, options.record ? "Record" : "Runtime");
  for (ir::BuildCommand &command : commands) {
    if (other && *other && command[0] != places.toolchain.nvcc) {
      // The processor's switches were spelled for the compiler of this build.
      command[0] = other;
      llvm::erase_if(command, [](llvm::StringRef word) { return word.starts_with("-m"); });
      if (!cuda)
        command.push_back("-march=native");
    }
    auto found = llvm::sys::findProgramByName(command[0]);
    if (!found || !llvm::sys::fs::can_execute(*found))
      throw Failure("cannot find the compiler '" + command[0] +
                    "'; install it, or name another one in the environment variable CXX");
  }
  llvm::ArrayRef<ir::BuildCommand> all(commands);
  runAll(all.drop_back(), toolchain.launcher, folder);
  runAll(all.take_back(), toolchain.launcher, folder);
  writeOutput(output, readFile(places.output), /*executable=*/true);
}

} // namespace fsdpc
