//===- Version.h - the version of the runtime ----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_VERSION_H
#define FSDP_RUNTIME_TRAIN_VERSION_H

namespace fsdp::rt {

/// The version of the runtime, with its commit if known: "0.1.0 (f88a390)".
const char *runtimeVersion();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_VERSION_H
