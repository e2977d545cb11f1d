//===- CudaArchitectures.cpp ----------------------------------------------===//

#include "codegen/CudaArchitectures.h"

#include "base/PrintableText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir::fsdp;
using llvm::StringRef;

/// The architectures that nvcc of CUDA 13 supports (--list-gpu-code), from the first with matrix
/// instructions on bf16 and asynchronous copies to shared memory on, which the attention kernels
/// use.
static constexpr int kArchitectures[] = {80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
/// The first with instructions of one architecture alone (90a), and of a family (100f).
static constexpr int kFirstAlone = 90, kFirstFamily = 100;

/// 90 for "90a"; 0 for architectures that nvcc does not support.
static int numberOf(StringRef architecture) {
  const StringRef digits = architecture.take_while(llvm::isDigit);
  const StringRef suffix = architecture.drop_front(digits.size());
  int number = 0;
  if (digits.starts_with("0") || digits.getAsInteger(10, number) ||
      !llvm::is_contained(kArchitectures, number))
    return 0;
  const bool exists = suffix.empty() || (suffix == "a" && number >= kFirstAlone) ||
                      (suffix == "f" && number >= kFirstFamily);
  return exists ? number : 0;
}

CudaArchitectures mlir::fsdp::defaultCudaArchitectures() {
  return {
#define FSDP_CUDA_ARCHITECTURE(architecture) architecture,
#include "runtime/program/CudaArchitectures.def"
#undef FSDP_CUDA_ARCHITECTURE
  };
}

CudaArchitectures mlir::fsdp::parseCudaArchitectures(StringRef text, std::string &message) {
  CudaArchitectures architectures;
  for (StringRef item : llvm::split(text, ',')) {
    const int number = numberOf(item);
    if (number == 0)
      message = "got " + base::inQuotes(item.str()) +
                ", expected compute capabilities separated by commas, of " +
                llvm::join(llvm::map_range(kArchitectures, [](int a) { return std::to_string(a); }),
                           ", ") +
                "; with 'a' behind them from " + std::to_string(kFirstAlone) +
                " on, with 'f' from " + std::to_string(kFirstFamily) + " on";
    else if (llvm::is_contained(architectures, item))
      message = base::inQuotes(item.str()) + " appears twice; name each compute capability once";
    if (!message.empty())
      return {};
    architectures.push_back(item.str());
  }
  return architectures;
}

std::vector<std::string> mlir::fsdp::codeOptions(llvm::ArrayRef<std::string> architectures) {
  std::vector<std::string> options;
  int newest = 0;
  for (const std::string &architecture : architectures) {
    options.push_back("-gencode=arch=compute_" + architecture + ",code=sm_" + architecture);
    newest = std::max(newest, numberOf(architecture));
  }
  // PTX of "90a" would be of use on no other device than its machine code.
  const std::string compute = "compute_" + std::to_string(newest);
  options.push_back("-gencode=arch=" + compute + ",code=" + compute);
  return options;
}
