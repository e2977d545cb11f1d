//===- KernelPrinter.h - kernels as C++ functions ---------------*- C++ -*-===//

#ifndef CODEGEN_KERNELPRINTER_H
#define CODEGEN_KERNELPRINTER_H

#include "codegen/Kernel.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {

/// A C++ function `void NAME(parameters) { body }`: first one `std::int64_t` for each mask (how
/// many elements of the split dimension are real), then a pointer for each input and each output.
struct KernelFunction {
  std::vector<std::string> parameters;
  std::string body;              ///< lines, not indented
  SmallVector<KernelMask> masks; ///< what the launch gives for them
};

/// The function of the body of `launch`. With `anonymous`, its variables have no names of the
/// model, so that equal kernels have equal text. Fails with a diagnostic where the body has no form
/// in C++.
FailureOr<KernelFunction> printKernel(LaunchOp launch, bool anonymous);

/// The kernels of a program, each once, whoever launches it.
class KernelTable {
public:
  /// Takes the kernel of `launch` in. To be called in issue order, before names are asked for.
  LogicalResult insert(LaunchOp launch);
  /// Names the kernels: after their launch, or after what their launches have in common.
  void assignNames();

  struct Entry {
    std::string name;
    KernelFunction function;
    SmallVector<std::string> launches; ///< distinct names of those who call it
  };
  bool contains(LaunchOp launch) const { return entryOf.count(launch); }
  const Entry &operator[](LaunchOp launch) const { return entries[entryOf.lookup(launch)]; }
  /// The masks of this launch, whose kernel may be that of another with others.
  ArrayRef<KernelMask> masksOf(LaunchOp launch) const { return masks.find(launch)->second; }
  const std::vector<Entry> &all() const { return entries; }

private:
  std::vector<Entry> entries;
  llvm::StringMap<size_t> byText;
  llvm::DenseMap<Operation *, size_t> entryOf;
  llvm::DenseMap<Operation *, SmallVector<KernelMask>> masks;
};

} // namespace mlir::fsdp

#endif // CODEGEN_KERNELPRINTER_H
