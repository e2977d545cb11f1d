//===- Ranges.cpp - ranges of NVTX, written to a file ---------------------===//
//
// What a profiler gives to NVTX: a library that NVTX_INJECTION64_PATH names. It writes the ranges
// that a program opens to the file "ranges" beside it, as the emulator's NVTX does (gpu/modes.py).
//
//===----------------------------------------------------------------------===//

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

std::FILE *openFile() {
  const char *library = std::getenv("NVTX_INJECTION64_PATH");
  const std::string path = library ? library : "";
  return std::fopen((path.substr(0, path.rfind('/') + 1) + "ranges").c_str(), "w");
}

int write(const char *what, const char *name) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static std::FILE *const file = openFile();
  static int threads = 0;
  thread_local const int thread = threads++;
  if (file) {
    std::fprintf(file, "%d %s%s\n", thread, what, name);
    std::fflush(file);
  }
  return 0;
}

int push(const char *name) { return write("push ", name); }
int pop() { return write("pop", ""); }

} // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getTable) {
  const auto *callbacks =
      static_cast<const NvtxExportTableCallbacks *>(getTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
