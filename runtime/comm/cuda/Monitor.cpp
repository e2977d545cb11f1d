#include "runtime/comm/cuda/Monitor.h"
#include "base/Thread.h"

namespace fsdp::rt {

using namespace base;

Monitor::Monitor(Collectives &collectives, Failure &failure, int rank, int device)
    : collectives_(collectives), failure_(failure), rank_(rank), device_(device),
      thread_(startThread("the monitor of NCCL", [this] { run(); })) {}

Monitor::~Monitor() {
  stop_.store(true);
  wake_.advance();
  thread_.join();
}

void Monitor::run() {
  cudaSetDevice(device_);
  while (!wake_.waitFor(1, 0.1) && !stop_.load()) {
    if (!failure_.raised())
      try {
        collectives_.inspect();
      } catch (const Error &error) {
        failure_.raise(error.at(rank_, ""));
      }
    if (failure_.raised()) {
      collectives_.abandon();
      return;
    }
  }
}

} // namespace fsdp::rt
