#include "runtime/execution/cuda/ProfilerRanges.h"

#include "base/EnvironmentFlag.h"
#include "base/Error.h"

#include <cstdlib>
#include <optional>
#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>) && !defined(FSDP_WITHOUT_NVTX)
#include <nvtx3/nvToolsExt.h>
#else
#define FSDP_WITHOUT_NVTX 1
#endif

namespace fsdp::rt {

using namespace base;

namespace {

#ifdef FSDP_WITHOUT_NVTX
constexpr bool kHasNvtx = false;
void push(const char *) {}
void pop() {}
#else
constexpr bool kHasNvtx = true;
void push(const char *name) { nvtxRangePushA(name); }
void pop() { nvtxRangePop(); }
#endif

} // namespace

std::unique_ptr<ProfilerRanges> ProfilerRanges::make() {
  const std::optional<bool> asked = environmentFlag("FSDP_NVTX", "names actions for profilers");
  if (asked.value_or(false) && !kHasNvtx)
    throw Error("FSDP_NVTX=1 got a program that was compiled without nvtx3/nvToolsExt.h: install "
                "that part of the CUDA toolkit and compile the program again, or unset it",
                kExitBadCommandLine)
        .byAll();
  const char *library = std::getenv("NVTX_INJECTION64_PATH");
  if (!kHasNvtx || !asked.value_or(library && *library))
    return nullptr;
  return std::make_unique<ProfilerRanges>();
}

void ProfilerRanges::endAction() {
  if (inAction_)
    pop();
  inAction_ = false;
}

void ProfilerRanges::begin(const char *name) {
  endAction();
  push(name);
  ++open_;
}

void ProfilerRanges::end() {
  endAction();
  pop();
  --open_;
}

void ProfilerRanges::beginRun(Mark mark) {
  begin((mark.name + (" " + std::to_string(mark.number))).c_str());
}

void ProfilerRanges::endRun() { end(); }

void ProfilerRanges::next(const char *name) {
  if (next_)
    next_->next(name);
  endAction();
  if (!name || open_ == 0) // between runs the host only prepares
    return;
  push(name);
  inAction_ = true;
}

} // namespace fsdp::rt
