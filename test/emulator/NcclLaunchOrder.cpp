//===- NcclLaunchOrder.cpp - the order of kernels of the emulated NCCL -------------===//

#include "NcclComm.h"

#include "Emulator.h"
#include "Failure.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace emulator {

bool ordersLaunches() {
  const char *said = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return said && std::strtoll(said, nullptr, 0) != 0;
}

namespace {

std::mutex launchesMutex;
/// What the next kernel of a device waits for.
std::map<int, PointRef> &lastKernels() {
  static auto *one = new std::map<int, PointRef>; // by device
  return *one;
}
/// Whose kernels have been launched, by device.
std::map<int, std::set<ncclComm_t>> &launchers() {
  static auto *one = new std::map<int, std::set<ncclComm_t>>;
  return *one;
}
} // namespace

void LaunchOrder::require() const {
  if (comm_->group->size == 1 || ordersLaunches())
    return;
  const std::lock_guard<std::mutex> lock(launchesMutex);
  std::set<ncclComm_t> &here = launchers()[device_];
  here.insert(comm_);
  int blocks = 0, communicators = 0;
  for (ncclComm_t other : here)
    if (!other->freed) {
      blocks += other->blocks;
      ++communicators;
    }
  if (communicators > 1 && blocks > kMultiprocessors)
    recordFailure(
        cudaErrorLaunchFailure,
        formatted("kernels of several communicators are launched on device %d without "
                  "NCCL_LAUNCH_ORDER_IMPLICIT: they may start in another order on each rank, and "
                  "the %d blocks of %d of them have no room at once on %d multiprocessors",
                  device_, blocks, communicators, kMultiprocessors));
}

void LaunchOrder::enqueue(cudaStream_t stream, const char *what, Action kernel, bool copies) const {
  if (!ordersLaunches()) {
    emulator::enqueue(stream, what, std::move(kernel), {}, copies);
    return;
  }
  std::vector<PointRef> needs;
  auto started = std::make_shared<Point>();
  {
    const std::lock_guard<std::mutex> lock(launchesMutex);
    PointRef &last = lastKernels()[device_];
    if (last)
      needs.push_back(last);
    last = started;
  }
  if (settings().driver >= 12030)
    kernel = [kernel = std::move(kernel), started](const PointRef &done) {
      complete(started);
      return kernel(done);
    };
  emulator::enqueue(stream, what, std::move(kernel), needs, copies);
  if (settings().driver < 12030) {
    PointRef tail = tailOf(stream);
    const std::lock_guard<std::mutex> lock(launchesMutex);
    lastKernels()[device_] = std::move(tail);
  }
}

void forgetLaunches() {
  const std::lock_guard<std::mutex> lock(launchesMutex);
  lastKernels().clear();
}

} // namespace emulator
