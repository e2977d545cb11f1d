//===- Program.cpp - scheduled IR as a program: source or binary ----------===//
//
// FSDP_SOURCE_ROOT, FSDP_RUNTIME_LIBRARY and FSDP_CCACHE are defined by CMakeLists.txt.
//
//===----------------------------------------------------------------------===//

#include "tools/fsdpc/Program.h"

#include "codegen/Project.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <filesystem>
#include <optional>

namespace files = std::filesystem;
namespace ir = mlir::fsdp;

namespace fsdpc {

static std::string readFile(const files::path &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path.string());
  if (!buffer)
    throw Failure("cannot read '" + path.string() + "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

ir::EmittedProgram emitProgram(mlir::ModuleOp module, const Options &options,
                               const std::string &name, const std::string &report) {
  ir::EmitOptions emit;
  emit.name = name;
  emit.report = report;
  emit.communicator = options.communicator;
  ir::EmittedProgram program;
  if (failed(ir::emitCpp(module, emit, program)))
    throw Failure("the program was not written");
  return program;
}

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

void writeSource(const ir::EmittedProgram &program, const Options &options,
                 const std::string &name) {
  Files content;
  for (const auto &[file, text] : program.files)
    content[file] = text;
  content["CMakeLists.txt"] = ir::projectFile(program, name);
  const files::path runtime = files::path(FSDP_SOURCE_ROOT) / "runtime";
  std::error_code error;
  for (const files::directory_entry &entry : files::directory_iterator(runtime, error)) {
    std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cpp" || extension == ".cmake" || extension == ".txt")
      content["runtime/" + entry.path().filename().string()] = readFile(entry.path());
  }
  if (error)
    throw Failure("cannot read the runtime's folder '" + runtime.string() +
                  "': " + error.message());
  writeFolder(options.output, content);
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

/// Runs `commands` at once in `folder`, all that they print going to files there. Throws Failure
/// with the words of the first that fails.
static void runAll(llvm::ArrayRef<ir::BuildCommand> commands, const std::string &folder) {
  struct Running {
    llvm::sys::ProcessInfo process;
    std::string log;
  };
  std::vector<Running> all;
  for (const ir::BuildCommand &command : commands) {
    // Run inside the folder, so that a compiler cache sees no name of a temporary folder.
    std::vector<std::string> words = {"env", "-C", folder, "CCACHE_NOHASHDIR=1"};
    if (*FSDP_CCACHE && llvm::is_contained(command, "-c"))
      words.push_back(FSDP_CCACHE);
    words.insert(words.end(), command.begin(), command.end());
    std::string log = folder + "/" + std::to_string(all.size()) + ".log";
    std::vector<llvm::StringRef> arguments(words.begin(), words.end());
    std::optional<llvm::StringRef> redirects[] = {llvm::StringRef("/dev/null"),
                                                  llvm::StringRef(log), llvm::StringRef(log)};
    all.push_back(
        {llvm::sys::ExecuteNoWait("/usr/bin/env", arguments, std::nullopt, redirects), log});
  }
  std::string failure;
  for (Running &running : all) {
    llvm::sys::ProcessInfo done = llvm::sys::Wait(running.process, std::nullopt);
    if (done.ReturnCode != 0 && failure.empty())
      failure = "the generated program did not compile (keep it with --emit=source):\n" +
                readFile(running.log);
  }
  if (!failure.empty())
    throw Failure(failure);
}

void writeBinary(const ir::EmittedProgram &program, const Options &options) {
  TemporaryFolder folder;
  for (const auto &[file, text] : program.files)
    writeFile(folder.path() + "/" + file, text);

  ir::BuildPlaces places;
  places.sources = ".";
  places.runtimeRoot = FSDP_SOURCE_ROOT;
  places.runtimeLibrary = FSDP_RUNTIME_LIBRARY;
  places.output = files::absolute(temporaryBeside(options.output)).string();
  places.record = options.record;
  std::vector<ir::BuildCommand> commands = ir::buildCommands(program, places);
  const char *other = std::getenv("CXX");
  for (ir::BuildCommand &command : commands) {
    if (other && *other) {
      // The processor's switches were spelled for the compiler of this build.
      command[0] = other;
      llvm::erase_if(command, [](llvm::StringRef word) { return word.starts_with("-m"); });
      command.push_back("-march=native");
    }
    auto found = llvm::sys::findProgramByName(command[0]);
    if (!found || !llvm::sys::fs::can_execute(*found))
      throw Failure("there is no compiler '" + command[0] +
                    "'; install it, or name another one in the environment variable CXX");
  }
  if (!options.record && !files::exists(places.runtimeLibrary))
    throw Failure("there is no runtime library '" + places.runtimeLibrary +
                  "'; build it with 'cmake --build --preset release --target fsdp_runtime'");
  llvm::ArrayRef<ir::BuildCommand> all(commands);
  runAll(all.drop_back(), folder.path());
  try {
    runAll(all.take_back(), folder.path());
  } catch (const Failure &) {
    std::error_code ignored;
    files::remove(places.output, ignored);
    throw;
  }
  moveFile(places.output, options.output);
}

} // namespace fsdpc
