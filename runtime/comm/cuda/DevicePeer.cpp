#include "runtime/comm/cuda/DevicePeer.h"
#include "base/Error.h"

#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

const char *fileName(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

} // namespace

int DevicePeer::rankIn(int index) const {
  int rank = 0;
  for (int axis : communicators_[static_cast<std::size_t>(index)].axes)
    rank = rank * mesh().axisSize(axis) + coordinate(axis);
  return rank;
}

int DevicePeer::sizeOf(int index) const {
  int ranks = 1;
  for (int axis : communicators_[static_cast<std::size_t>(index)].axes)
    ranks *= mesh().axisSize(axis);
  return ranks;
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
