#include "runtime/train/Version.h"

namespace fsdp::rt {

const char *runtimeVersion() { return FSDP_VERSION; }

} // namespace fsdp::rt
