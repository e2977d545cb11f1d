//===- nvToolsExt.h - ranges for profilers, written to a file --------------------===//
//
// NVTX as the toolkit's header of this name has it, which calls the library that a profiler names
// in NVTX_INJECTION64_PATH. Here that variable names a file, to which each range is written when it
// begins ("push NAME") and ends ("pop").
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_NVTX3_NVTOOLSEXT_H
#define FSDP_EMULATOR_NVTX3_NVTOOLSEXT_H

int nvtxRangePushA(const char *name);
int nvtxRangePop();

#endif // FSDP_EMULATOR_NVTX3_NVTOOLSEXT_H
