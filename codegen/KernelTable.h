//===- KernelTable.h - the generated kernels of a program -------*- C++ -*-===//

#ifndef CODEGEN_KERNELTABLE_H
#define CODEGEN_KERNELTABLE_H

#include "codegen/Kernel.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <functional>
#include <unordered_map>

namespace mlir::fsdp {

/// A function `NAME(parameters) { body }` of the emitted program: first one `std::int64_t` for each
/// mask (how many elements of the split dimension are valid), then a pointer for each input and
/// each output. On the CPU an epilogue of a product takes the range of rows before the pointers.
struct KernelFunction {
  std::vector<std::string> parameters;
  std::string device; ///< lines before the function that only it uses; `@` denotes its name
  std::string body;   ///< lines, not indented; `@` as above
  /// What the target's library computes of an epilogue with the product, as arguments of its type
  /// in the runtime; none for nothing.
  std::vector<std::string> library;
  std::vector<KernelFunction> rest; ///< what the library then leaves, if anything
  SmallVector<KernelMask> masks;    ///< the arguments of the launch for them
  std::string name;                 ///< wanted; empty: after the launches

  /// The function of `kernel`, without lines; the names are those of its masks, inputs and outputs.
  static KernelFunction declare(const Kernel &kernel, ArrayRef<std::string> held,
                                ArrayRef<std::string> inputs, ArrayRef<std::string> outputs);
};

/// A target's function for the body of a launch; with `anonymous` its variables have no names of
/// the model, so that equal kernels have equal text.
using KernelWriter = std::function<FailureOr<KernelFunction>(LaunchOp launch, bool anonymous)>;

/// The input of an anonymous kernel's text. Equal sources have equal kernels. Equal kernels may
/// have different sources: attributes that do not affect the kernel may differ.
class KernelSource {
public:
  KernelSource(const ScheduledProgram &program, LaunchOp launch);

  size_t hash() const;
  bool operator==(const KernelSource &other) const;

private:
  /// Of an operand or a result.
  struct Buffer {
    Type type;
    size_t first;      ///< the first of the launch's buffers that is the same one
    int64_t alignment; ///< ScheduledProgram::alignmentOf
    bool operator==(const Buffer &other) const {
      return type == other.type && first == other.first && alignment == other.alignment;
    }
  };

  mutable LaunchOp launch; ///< whose body is compared, except for locations
  SmallVector<Buffer, 6> buffers;
};

/// The kernels of a program, or of all plans of one, each once.
class KernelTable {
public:
  /// Adds the kernel of `launch` of `program` as printed by `write`. Must be called in issue order,
  /// before names are requested.
  LogicalResult insert(const ScheduledProgram &program, LaunchOp launch, const KernelWriter &write);
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
  /// A launch whose kernel was printed.
  struct Printed {
    KernelSource source;
    size_t entry;
    SmallVector<KernelMask> masks;
  };
  /// The one with the source of `launch`, which is printed if there is none.
  FailureOr<const Printed *> find(const ScheduledProgram &program, LaunchOp launch,
                                  const KernelWriter &write);

  std::vector<Entry> entries;
  llvm::StringMap<size_t> byText; ///< anonymous: it contains no names of the model
  std::deque<Printed> printed;
  std::unordered_map<size_t, SmallVector<const Printed *, 1>> bySource; ///< by their hashes
  llvm::DenseMap<Operation *, const Printed *> printedOf;               ///< by launch
};

/// "Launched as 'h.0.ffn.gelu', 'h.1.ffn.gelu' and 10 more".
std::string launchedAs(const KernelTable::Entry &entry);

} // namespace mlir::fsdp

#endif // CODEGEN_KERNELTABLE_H
