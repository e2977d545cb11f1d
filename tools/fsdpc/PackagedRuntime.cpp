#include "tools/fsdpc/PackagedRuntime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"
#include <filesystem>

namespace files = std::filesystem;

namespace fsdpc {

namespace {

/// A level of the x86-64 psABI, as compilers name it in -march, or one with further instructions.
/// tools/package/Runtimes.cmake has the switches of each.
struct Level {
  const char *name;
  /// The features that identify it, by LLVM's names. Processors with these have the others.
  std::vector<const char *> features;
};

const std::vector<Level> &levels() {
  static const std::vector<Level> all = {
      {"x86-64-v4-bf16",
       {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512bf16", "avx2", "fma"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"}},
      {"x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
  };
  return all;
}

} // namespace

std::vector<PackagedRuntime> listPackagedRuntimes(const std::string &folder) {
  std::vector<PackagedRuntime> found;
  for (const Level &level : levels()) {
    const files::path place = files::path(folder) / level.name;
    std::error_code error;
    if (files::exists(place / "toolchain.json", error))
      found.push_back({level.name, place.string()});
  }
  return found;
}

std::optional<PackagedRuntime> chooseForHost(const std::vector<PackagedRuntime> &runtimes) {
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (const PackagedRuntime &runtime : runtimes) {
    const auto level =
        llvm::find_if(levels(), [&](const Level &each) { return runtime.name == each.name; });
    if (llvm::all_of(level->features, [&](const char *feature) { return host.lookup(feature); }))
      return runtime;
  }
  return std::nullopt;
}

} // namespace fsdpc
