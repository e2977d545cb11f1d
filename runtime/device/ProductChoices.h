//===- ProductChoices.h - algorithms that were chosen by time -------------===//
#ifndef FSDP_RUNTIME_DEVICE_PRODUCTCHOICES_H
#define FSDP_RUNTIME_DEVICE_PRODUCTCHOICES_H

#include <map>
#include <string>

namespace fsdp::rt {

/// Which of the algorithms that a library proposes computes each product, where that was measured
/// (FSDP_TUNE). The numbers mean something on `machine` only.
struct ProductChoices {
  std::string machine; ///< "NVIDIA H200 (9.0), cuBLASLt 130100"; empty: nothing was measured
  std::map<std::string, int> algorithms; ///< by product: its sizes, strides, types and epilogue
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_PRODUCTCHOICES_H
