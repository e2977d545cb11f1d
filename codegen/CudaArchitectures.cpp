//===- CudaArchitectures.cpp ----------------------------------------------===//

#include "codegen/CudaArchitectures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir::fsdp;
using llvm::StringRef;

/// The first with matrix instructions on bf16 and copies past the registers, which the attention
/// kernels are made of.
static constexpr int kOldest = 80;

/// 90 of "90a"; 0 of what is no compute capability.
static int numberOf(StringRef architecture) {
  const StringRef digits = architecture.take_while(llvm::isDigit);
  const StringRef suffix = architecture.drop_front(digits.size());
  int number = 0;
  if (digits.size() < 2 || digits.size() > 3 || digits.starts_with("0") ||
      digits.getAsInteger(10, number))
    return 0;
  // Instructions of one architecture alone came with 90, those of a family with 100.
  const bool spelled =
      suffix.empty() || (suffix == "a" && number >= 90) || (suffix == "f" && number >= 100);
  return spelled ? number : 0;
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
      message = "got '" + item.str() +
                "', expected compute capabilities separated by commas, such as 90 or 80,90a,100";
    else if (number < kOldest)
      message = "got '" + item.str() + "', expected compute capabilities of at least " +
                std::to_string(kOldest) + ", which the kernels need";
    else if (llvm::is_contained(architectures, item))
      message = "'" + item.str() + "' appears twice; name each compute capability once";
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
