//===- KernelTable.h - the generated kernels of a program -------*- C++ -*-===//

#ifndef CODEGEN_KERNELTABLE_H
#define CODEGEN_KERNELTABLE_H

#include "codegen/Kernel.h"
#include "dialect/fsdp/LaunchBodies.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include <functional>

namespace mlir::fsdp {

/// A function `NAME(parameters) { body }` of the emitted program: first one `std::int64_t` for each
/// mask (how many elements of the split dimension are valid), then a pointer for each input and
/// each output. On the CPU an epilogue of a product takes the range of rows before the pointers.
struct KernelFunction {
  std::vector<std::string> parameters;
  std::string device; ///< lines before the function that only it uses; `@` denotes its name
  std::string body;   ///< lines, not indented; `@` as above
  /// The part of an epilogue that the target's library computes with the product, as arguments of
  /// its type in the runtime; empty if there is none.
  std::vector<std::string> library;
  std::vector<KernelFunction> rest; ///< for the results that the library leaves out
  SmallVector<KernelMask> masks;    ///< the arguments of the launch for them
  std::string name;                 ///< wanted; empty: after the launches

  /// The function of `kernel`, without lines; the names are those of its masks, inputs and outputs.
  static KernelFunction declare(const Kernel &kernel, ArrayRef<std::string> held,
                                ArrayRef<std::string> inputs, ArrayRef<std::string> outputs);
};

/// A target's function for the body of a launch; with `anonymous` its variables have no names of
/// the model, so that equal kernels have equal text.
using KernelWriter = std::function<FailureOr<KernelFunction>(LaunchOp launch, bool anonymous)>;

/// True if the buffers of both launches have equal types, and the same ones of them are equal.
bool haveAlikeBuffers(LaunchOp one, LaunchOp other);

/// Launches that have equal anonymous kernels. Those of others may be equal too: attributes that do
/// not affect the kernel may differ.
struct EqualKernels {
  static size_t hash(LaunchOp launch);
  static bool areAlike(LaunchOp one, LaunchOp other);
};

/// The kernels of a program, or of all plans of one, each once.
class KernelTable {
public:
  /// Adds the kernel of `launch` as printed by `write`. Must be called in issue order, before names
  /// are requested.
  LogicalResult insert(LaunchOp launch, const KernelWriter &write);
  /// Names the kernels after their launch, or after the common part of the names of their launches.
  void assignNames();

  struct Entry {
    std::string name;
    KernelFunction function;
    llvm::SetVector<StringRef> launches; ///< the names of its launches, held by the module
    /// The name of the function, where `name` is that of the library's epilogue.
    std::string functionName() const {
      return function.library.empty() ? name : name + loopsEnding.str();
    }
  };
  static constexpr StringLiteral loopsEnding = "_loops", restEnding = "_rest";
  /// The number of the launch's kernel, from 1; 0 if it has none.
  size_t numberOf(LaunchOp launch) const {
    const Printed *kernel = printedOf.lookup(launch);
    return kernel ? kernel->entry + 1 : 0;
  }
  const Entry &operator[](LaunchOp launch) const {
    return entries[printedOf.lookup(launch)->entry];
  }
  /// The masks of this launch, whose kernel may be that of another launch with other masks.
  ArrayRef<KernelMask> masksOf(LaunchOp launch) const { return printedOf.lookup(launch)->masks; }
  const std::vector<Entry> &all() const { return entries; }
  /// True if a kernel uses bf16, a type that the runtime declares.
  bool nameBf16() const;

private:
  /// The kernel of alike launches.
  struct Printed {
    size_t entry;
    SmallVector<KernelMask> masks;
  };

  std::vector<Entry> entries;
  llvm::StringMap<size_t> byText; ///< anonymous: it contains no names of the model
  PerLaunchClass<Printed, EqualKernels> printed;
  llvm::DenseMap<Operation *, const Printed *> printedOf; ///< by launch
};

/// "Launched as 'h.0.ffn.gelu', 'h.1.ffn.gelu' and 10 more".
std::string launchedAs(const KernelTable::Entry &entry);

} // namespace mlir::fsdp

#endif // CODEGEN_KERNELTABLE_H
