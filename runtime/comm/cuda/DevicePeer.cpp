#include "runtime/comm/cuda/DevicePeer.h"
#include "base/Error.h"

#include <algorithm>
#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

const char *fileName(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

} // namespace

bool DevicePeer::joinsRoles(const CommunicatorSpec &spec) const {
  return std::any_of(spec.axes.begin(), spec.axes.end(), [&](int axis) {
    return std::find(roleAxes_.begin(), roleAxes_.end(), axis) != roleAxes_.end();
  });
}

int DevicePeer::rankIn(int index) const {
  const std::vector<int> group =
      mesh().ranksOf(communicators_[static_cast<std::size_t>(index)], rank());
  return static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
}

int DevicePeer::sizeOf(int index) const {
  return static_cast<int>(
      mesh().ranksOf(communicators_[static_cast<std::size_t>(index)], rank()).size());
}

void DevicePeer::fail(cudaError_t status, const char *file, int line) const {
  failure().check(); // an earlier failure is the cause
  throw Error(format("%s (%s) at %s:%d", cudaGetErrorString(status), cudaGetErrorName(status),
                     fileName(file), line),
              kExitFailure, file, line)
      .at(rank(), action());
}

void DevicePeer::fail(ncclResult_t status, const char *file, int line) const {
  failure().check();
  std::string detail = ncclGetLastError(nullptr);
  if (status == ncclUnhandledCudaError)
    if (cudaError_t cause = cudaPeekAtLastError())
      detail = cudaGetErrorString(cause);
  throw Error(format("%s%s%s at %s:%d", ncclGetErrorString(status), detail.empty() ? "" : ": ",
                     detail.c_str(), fileName(file), line),
              kExitFailure, file, line)
      .at(rank(), action());
}

} // namespace fsdp::rt
