//===- Toolchain.cpp - compilation and linking of programs ----------------===//
//
// FSDP_COMPILER, which CMakeLists.txt defines, is the name of the compiler of this build.
//
//===----------------------------------------------------------------------===//

#include "tools/fsdpc/Toolchain.h"

#include "base/PrivateFolder.h"
#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/Output.h"
#include "tools/fsdpc/PackagedRuntime.h"
#include "tools/output/TemporaryFolder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MD5.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace files = std::filesystem;
namespace ir = mlir::fsdp;

namespace fsdpc {

const std::string &findRuntimeSources() {
  static const std::string found = [] {
    Dl_info info;
    std::error_code error;
    files::path self;
    if (dladdr(reinterpret_cast<const void *>(&findRuntimeSources), &info) && info.dli_fname)
      self = files::canonical(info.dli_fname, error);
    const files::path share = self.parent_path().parent_path() / "share" / "fsdpc";
    if (!files::exists(share / "runtime" / "Runtime.h", error))
      throw Failure("the sources of the runtime library are not in '" + share.string() +
                    "', where those of '" + self.string() +
                    "' are installed; install the complete package");
    return share.string();
  }();
  return found;
}

std::string readVersion() {
  return llvm::StringRef(readFile(findRuntimeSources() + "/version.txt")).rtrim().str();
}

//===----------------------------------------------------------------------===//
// The progress of a build
//===----------------------------------------------------------------------===//

/// The percentage of a build with output `log`: its last line that begins with
/// "[12/80]", as ninja's do with NINJA_STATUS="[%f/%t] ", or with "[ 15%]", as make's do. Nothing
/// before the first such line.
static std::optional<unsigned> percentageOf(llvm::StringRef log) {
  std::optional<unsigned> percentage;
  for (llvm::StringRef line; !log.empty();) {
    std::tie(line, log) = log.split('\n');
    uint64_t done = 0, all = 100;
    if (!line.consume_front("[") || line.ltrim().consumeInteger(10, done))
      continue;
    llvm::StringRef rest = line.ltrim().drop_while([](char c) { return c >= '0' && c <= '9'; });
    if (rest.consume_front("/") ? rest.consumeInteger(10, all) || !rest.starts_with("]")
                                : !rest.starts_with("%]"))
      continue;
    if (all > 0 && done <= all)
      percentage = static_cast<unsigned>(100 * done / all);
  }
  return percentage;
}

static std::string minutes(double seconds) {
  std::string text;
  llvm::raw_string_ostream out(text);
  const auto whole = static_cast<unsigned>(seconds + 0.5);
  out << whole / 60 << llvm::format(":%02u", whole % 60);
  return text;
}

namespace {
/// Shows the progress of a build of the runtime library and an estimate of the remaining time on
/// standard error: on a terminal in one line that is replaced, else a line at each quarter.
class BuildProgress {
public:
  /// `log` is the file that the build prints to.
  explicit BuildProgress(std::string log) : log(std::move(log)) {}
  /// Reads the log. Must be called several times a second.
  void update();
  /// The build has succeeded: prints its duration.
  void finish();
  /// Ends the line of a terminal, before something else is printed.
  void clear();

private:
  double countSeconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::string log;
  bool terminal = isatty(STDERR_FILENO);
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  unsigned shown = 0; ///< the last quarter printed
};
} // namespace

void BuildProgress::update() {
  auto buffer = llvm::MemoryBuffer::getFile(log, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  const std::optional<unsigned> percentage =
      buffer ? percentageOf((*buffer)->getBuffer()) : std::nullopt;
  const double seconds = countSeconds();
  const bool line = percentage && *percentage / 25 > shown && *percentage < 100;
  if (!terminal && !line)
    return;
  std::string text = "fsdpc: ";
  if (percentage)
    text += std::to_string(*percentage) + " % of the runtime library is built, " +
            minutes(seconds) + " so far";
  else
    text += "configuring the runtime library, " + minutes(seconds) + " so far";
  if (percentage && *percentage > 0)
    text += ", about " + minutes(seconds * (100 - *percentage) / *percentage) + " left";
  if (terminal)
    llvm::errs() << "\r\033[K" << text;
  else
    llvm::errs() << text << "\n";
  if (line)
    shown = *percentage / 25;
}

void BuildProgress::clear() {
  if (terminal)
    llvm::errs() << "\r\033[K";
}

void BuildProgress::finish() {
  clear();
  llvm::errs() << "fsdpc: built the runtime library in " << minutes(countSeconds()) << "\n";
}

//===----------------------------------------------------------------------===//
// The runtime of an installed compiler
//===----------------------------------------------------------------------===//

/// The C++ compiler for programs: that of this compiler's build if it is installed.
static std::string findCompiler() {
  for (const char *name : {FSDP_COMPILER, "clang++-22", "clang++", "g++", "c++"})
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  throw Failure("no C++ compiler was found; install clang-22 or g++");
}

static std::string findTool(const char *name, const char *package) {
  if (auto found = llvm::sys::findProgramByName(name))
    return *found;
  throw Failure(std::string("the runtime library is built on first use, and '") + name +
                "' was not found; install " + package);
}

/// nvcc where the runtime's Cuda.cmake looks for it, or an empty string.
static std::string findNvcc() {
  const char *home = std::getenv("CUDA_HOME");
  const std::string inHome = std::string(home ? home : "") + "/bin";
  if (auto found = llvm::sys::findProgramByName("nvcc", {"/usr/local/cuda/bin", inHome}))
    return *found;
  auto found = llvm::sys::findProgramByName("nvcc");
  return found ? *found : "";
}

/// A digest of everything that the library depends on: sources, compilers, MPI, processor. A later
/// installation of MPI or CUDA changes it, so that the library is rebuilt.
static std::string digestOfRuntime(const std::string &sources, const std::string &compiler,
                                   ir::TargetKind target) {
  llvm::MD5 digest;
  std::map<std::string, std::string> texts;
  for (const char *part : {"runtime", "base", "tokenizer"})
    for (const auto &entry : files::recursive_directory_iterator(files::path(sources) / part))
      if (entry.is_regular_file())
        texts[entry.path().string()] = readFile(entry.path().string());
  for (const auto &[path, text] : texts) {
    digest.update(path);
    digest.update(text);
  }
  const bool cuda = target == ir::TargetKind::Cuda;
  const auto mpi = llvm::sys::findProgramByName("mpicxx");
  for (const std::string &program : {compiler, mpi ? *mpi : "", cuda ? findNvcc() : ""}) {
    digest.update(program + ";");
    if (llvm::sys::fs::file_status status; !llvm::sys::fs::status(program, status))
      digest.update(std::to_string(status.getLastModificationTime().time_since_epoch().count()));
  }
  digest.update(llvm::sys::getHostCPUName());
  std::map<std::string, bool> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features[feature.getKey().str()] = feature.getValue();
  for (const auto &[feature, there] : features)
    if (there)
      digest.update(feature);
  digest.update(cuda ? "cuda" : "cpu");
  llvm::MD5::MD5Result result;
  digest.final(result);
  return result.digest().str().str();
}

/// Empty if the environment names none.
static files::path cacheFolder() {
  // A relative path is invalid and ignored, as the XDG specification says.
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return files::path(cache) / "fsdpc";
  if (const char *home = std::getenv("HOME"); home && *home)
    return files::path(home) / ".cache" / "fsdpc";
  return {};
}

/// Throws Failure for a `fault` of `path`, which is or will be executed.
static void requireNoFault(const files::path &path, const std::string &fault) {
  if (!fault.empty())
    throw Failure("the cache of the runtime library must belong to this user alone: '" +
                  path.string() + "' " + fault +
                  "; correct that, or set XDG_CACHE_HOME to another folder");
}

/// Throws Failure where others may have changed anything in the folder `built`.
static void requireOwn(const files::path &built) {
  requireNoFault(built, base::faultOfPrivateFolder(built.string()));
  for (const files::directory_entry &entry : files::recursive_directory_iterator(built))
    requireNoFault(entry.path(), base::faultOfOwner(entry.path().string(), /*linkAllowed=*/true));
}

/// During its lifetime, files of this process and its children belong to this user alone,
/// independent of the umask.
class PrivateFiles {
public:
  PrivateFiles() : before(umask(077)) {}
  ~PrivateFiles() { umask(before); }
  PrivateFiles(const PrivateFiles &) = delete;
  PrivateFiles &operator=(const PrivateFiles &) = delete;

private:
  mode_t before;
};

/// Runs `command` to its end, its output in `log`. Throws Failure with its last lines.
static void runStep(std::vector<std::string> command, const std::string &log,
                    TemporaryFolder &place, BuildProgress &progress) {
  command.insert(command.begin(), "NINJA_STATUS=[%f/%t] ");
  const llvm::sys::ProcessInfo process = place.start(command, log);
  llvm::sys::ProcessInfo done;
  while ((done = llvm::sys::Wait(process, /*SecondsToWait=*/0)).Pid == 0) {
    progress.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  progress.update();
  place.removeProcess(process.Pid);
  if (done.ReturnCode == 0)
    return;
  progress.clear();
  std::string text = readFile(log);
  throw Failure("the runtime library could not be built:\n" +
                text.substr(text.size() > 4000 ? text.size() - 4000 : 0));
}

/// `files`: "nvcc, nccl.h".
static Failure missingCuda(const std::string &files) {
  return Failure("--target=cuda needs the CUDA toolkit and NCCL; not found: " + files +
                 "; install them (CUDA_HOME names another folder than /usr/local/cuda), or use "
                 "--emit=source and "
                 "build the source where they are installed");
}

/// The toolchain.json of a runtime for this processor, which is built if it is not in the cache.
static std::string cachedToolchain(const std::string &sources, ir::TargetKind target) {
  const bool cuda = target == ir::TargetKind::Cuda;
  const std::string compiler = findCompiler();
  files::path cache = cacheFolder();
  if (cache.empty())
    throw Failure("there is no cache folder for the runtime library, which is built on first use; "
                  "set HOME, or XDG_CACHE_HOME to an absolute path");
  std::error_code error;
  const PrivateFiles privately;
  files::create_directories(cache, error);
  // From here on by its real path, which has no link that could be redirected later.
  const files::path place = error ? cache : files::canonical(cache.parent_path(), error);
  if (error)
    throw Failure("cannot create the folder '" + cache.string() + "': " + error.message());
  cache = place / cache.filename();
  requireNoFault(place, base::faultOfPlace(place.string()));
  requireNoFault(cache, base::faultOfPrivateFolder(cache.string()));
  const files::path built = cache / digestOfRuntime(sources, compiler, target);
  if (files::exists(built / "toolchain.json", error)) {
    requireOwn(built);
    return (built / "toolchain.json").string();
  }
  if (cuda && findNvcc().empty())
    throw missingCuda("nvcc");
  const std::string cmake = findTool("cmake", "cmake");
  const bool ninja = bool(llvm::sys::findProgramByName("ninja"));
  if (!ninja)
    findTool("make", "ninja-build or make");
  llvm::errs() << "fsdpc: building the runtime library for this processor, once, in '"
               << built.string() << "'\n";
  // Built next to its final path and moved there complete: another process may be building the
  // same.
  TemporaryFolder folder(built.string());
  const std::string log = folder.path() + "/log", build = folder.path() + "/build";
  std::vector<std::string> configure = {cmake,
                                        "-S",
                                        sources + "/runtime",
                                        "-B",
                                        build,
                                        "-DCMAKE_BUILD_TYPE=Release",
                                        "-DCMAKE_CXX_COMPILER=" + compiler,
                                        std::string("-DFSDP_TARGETS=") + (cuda ? "cuda" : "cpu")};
  if (ninja)
    configure.insert(configure.end(), {"-G", "Ninja"});
  BuildProgress progress(log);
  try {
    runStep(configure, log, folder, progress);
  } catch (const Failure &) {
    if (cuda && files::exists(build + "/missing.txt", error))
      throw missingCuda(readFile(build + "/missing.txt"));
    throw;
  }
  runStep({cmake, "--build", build, "--parallel",
           std::to_string(std::max(1u, std::thread::hardware_concurrency()))},
          log, folder, progress);
  const std::string file = build + "/toolchain.json";
  std::string text = readFile(file);
  for (size_t at = 0; (at = text.find(build, at)) != std::string::npos; at += built.string().size())
    text.replace(at, build.size(), built.string());
  llvm::raw_fd_ostream out(file, error);
  out << text;
  out.close();
  if (out.has_error())
    throw Failure("cannot write '" + file + "': " + out.error().message());
  files::rename(build, built, error);
  if (std::error_code ignored; error && !files::exists(built / "toolchain.json", ignored))
    throw Failure("cannot write '" + built.string() + "': " + error.message());
  requireOwn(built); // another process may have been the first
  progress.finish();
  return (built / "toolchain.json").string();
}

/// Whether a runtime for this processor has been built.
static bool isInCache(const std::string &sources, ir::TargetKind target) {
  const files::path cache = cacheFolder();
  std::error_code error;
  return !cache.empty() && files::exists(cache, error) &&
         files::exists(cache / digestOfRuntime(sources, findCompiler(), target) / "toolchain.json",
                       error);
}

/// The runtime of the package that is to be used, if one is.
static std::optional<PackagedRuntime> choosePackaged(const std::string &sources,
                                                     ir::TargetKind target) {
  const char *given = std::getenv("FSDP_RUNTIME");
  const std::string wanted = given ? given : "";
  // They are linked as the compiler of this build does it.
  if (target == ir::TargetKind::Cuda || wanted == "native" ||
      !llvm::sys::findProgramByName(FSDP_COMPILER))
    return std::nullopt;
  const std::vector<PackagedRuntime> runtimes = listPackagedRuntimes(
      (files::path(sources).parent_path().parent_path() / "lib" / "fsdpc").string());
  if (wanted.empty())
    return isInCache(sources, target) ? std::nullopt : chooseForHost(runtimes);
  std::string names = "'native'";
  for (const PackagedRuntime &runtime : runtimes) {
    if (runtime.name == wanted)
      return runtime;
    names += ", '" + runtime.name + "'";
  }
  throw Failure("FSDP_RUNTIME: got '" + wanted + "', expected one of " + names);
}

//===----------------------------------------------------------------------===//
// toolchain.json
//===----------------------------------------------------------------------===//

static std::vector<std::string> stringsOf(const llvm::json::Object &object, llvm::StringRef key) {
  std::vector<std::string> strings;
  if (const llvm::json::Array *array = object.getArray(key))
    for (const llvm::json::Value &value : *array)
      if (auto text = value.getAsString())
        strings.push_back(text->str());
  return strings;
}

static llvm::json::Object readToolchain(const std::string &path) {
  auto parsed = llvm::json::parse(readFile(path));
  if (parsed && parsed->getAsObject())
    return std::move(*parsed->getAsObject());
  llvm::consumeError(parsed.takeError());
  throw Failure("'" + path + "' is damaged; remove it");
}

static std::string stringOf(const llvm::json::Object &object, llvm::StringRef key) {
  return object.getString(key).value_or("").str();
}

static std::string builtToolchain() { return findRuntimeSources() + "/toolchain.json"; }

/// Adapts the paths of a packaged runtime to this machine. True if the runtime was built with MPI,
/// which is not installed here.
static bool locate(llvm::json::Object &object, const std::string &folder) {
  object["compiler"] = *llvm::sys::findProgramByName(FSDP_COMPILER);
  object.erase("launcher");
  const std::vector<std::string> ofMpi = stringsOf(object, "mpi_libraries");
  const bool withoutMpi =
      !llvm::all_of(ofMpi, [](const std::string &library) { return files::exists(library); });
  for (const char *key : {"libraries", "without_mpi"}) {
    llvm::json::Array paths;
    for (std::string path : stringsOf(object, key)) {
      if (withoutMpi && llvm::is_contained(ofMpi, path))
        continue;
      if (path.front() == '@')
        path.replace(0, 1, folder);
      paths.push_back(std::move(path));
    }
    object[key] = std::move(paths);
  }
  return withoutMpi;
}

Toolchain findToolchain(ir::TargetKind target, const std::string &communicator) {
  const bool cuda = target == ir::TargetKind::Cuda;
  std::string path = builtToolchain();
  std::optional<PackagedRuntime> packaged;
  if (!files::exists(path)) {
    packaged = choosePackaged(findRuntimeSources(), target);
    path = packaged ? packaged->folder + "/toolchain.json"
                    : cachedToolchain(findRuntimeSources(), target);
  }
  llvm::json::Object object = readToolchain(path);
  const bool withoutMpi = packaged && locate(object, packaged->folder);
  Toolchain found;
  found.launcher = stringOf(object, "launcher");
  found.program.compiler = stringOf(object, "compiler");
  found.program.flags = stringsOf(object, "flags");
  found.program.hardening = stringsOf(object, "hardening");
  found.program.libraries = stringsOf(object, cuda ? "cuda_libraries" : "libraries");
  if (cuda) {
    found.program.nvcc = stringOf(object, "nvcc");
    found.program.includes = stringsOf(object, "cuda_includes");
    found.architectures = stringsOf(object, "cuda_architectures");
    if (found.program.nvcc.empty())
      throw Failure("--target=cuda needs the CUDA toolkit and NCCL, which this compiler was built "
                    "without; install them, "
                    "configure with 'cmake --preset release' and build it again, or use "
                    "--emit=source and build the source "
                    "where they are installed");
  }
  // Ranks that are forked or connected over TCP need no MPI: this replaces the part that would.
  if (withoutMpi || communicator == "shm" || communicator == "tcp") {
    std::vector<std::string> without = stringsOf(object, "without_mpi");
    found.program.libraries.insert(found.program.libraries.begin(), without.begin(), without.end());
  }
  return found;
}

Toolchain findRecordingToolchain() {
  Toolchain found;
  if (std::string path = builtToolchain(); files::exists(path)) {
    const llvm::json::Object object = readToolchain(path);
    found.launcher = stringOf(object, "launcher");
    found.program.compiler = stringOf(object, "compiler");
  } else {
    found.program.compiler = findCompiler();
  }
  return found;
}

} // namespace fsdpc
