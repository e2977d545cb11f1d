#include "runtime/execution/cuda/AttentionChoice.h"

#include "base/Error.h"
#include "runtime/kernels/cuda/CudnnLibrary.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

/// The decision that rank 0 broadcasts.
struct Decision {
  std::uint64_t version = 0;
  std::int32_t status = kExitDone; ///< else `message` describes the error
  char message[1020] = {};
};

Decision decide(std::size_t (*findVersion)()) {
  Decision decision;
  const char *value = std::getenv("FSDP_ATTENTION");
  if (!value || !*value || std::strcmp(value, "own") == 0)
    return decision;
  try {
    if (std::strcmp(value, "cudnn") != 0)
      throw Error(
          format("environment variable 'FSDP_ATTENTION' got '%s', expected own or cudnn", value),
          kExitBadCommandLine);
    decision.version = findVersion();
  } catch (const Error &error) {
    decision.status = error.status();
    std::snprintf(decision.message, sizeof decision.message, "%s", error.what());
  }
  return decision;
}

} // namespace

std::size_t versionOfCudnn() { return cudnn::Library::open().version(); }

std::size_t chooseCudnn(Communicator &world, std::size_t (*findVersion)()) {
  Decision decision;
  if (world.rank() == 0)
    decision = decide(findVersion);
  world.broadcast(&decision, sizeof decision, /*root=*/0);
  if (decision.status != kExitDone)
    throw Error(decision.message, decision.status).byAll();
  if (decision.version == 0 || world.rank() == 0)
    return decision.version;
  if (const std::size_t own = findVersion(); own != decision.version)
    throw Error(format("FSDP_ATTENTION=cudnn got cuDNN %s on rank %d, expected %s as on rank 0: "
                       "install the same version on all machines",
                       cudnn::versionText(own).c_str(), world.rank(),
                       cudnn::versionText(decision.version).c_str()),
                kExitNoDevice);
  return decision.version;
}

} // namespace fsdp::rt
