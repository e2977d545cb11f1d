//===- AttentionLibrary.h - the library that computes attention -*- C++ -*-===//
#ifndef FSDP_RUNTIME_EXECUTION_ATTENTIONLIBRARY_H
#define FSDP_RUNTIME_EXECUTION_ATTENTIONLIBRARY_H

#include <string>

namespace fsdp::rt {

/// Both empty: the program's own kernels compute attention.
struct AttentionLibrary {
  std::string name;      ///< with its version: "cuDNN 9.28.0"
  std::string workspace; ///< scratch memory of a rank: "12345 bytes on stream 'compute'"
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_ATTENTIONLIBRARY_H
