#include "runtime/comm/cuda/Collectives.h"
#include "runtime/comm/cuda/LoopbackCollectives.h"
#include "runtime/comm/cuda/NcclCollectives.h"

namespace fsdp::rt {

std::unique_ptr<Collectives> makeCollectives(Context &context) {
  if (context.job().options().transport == Transport::Loopback)
    return std::make_unique<LoopbackCollectives>(context);
  return std::make_unique<NcclCollectives>(context);
}

} // namespace fsdp::rt
