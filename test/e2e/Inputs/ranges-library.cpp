// What a profiler gives to NVTX: prints the ranges that a program opens. test/e2e/nvtx.test.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

static int push(const char *name) {
  std::printf("push %s\n", name);
  return 0;
}
static int pop() {
  std::puts("pop");
  return 0;
}

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
