//===- KernelCall.h - the runtime call of an op -----------------*- C++ -*-===//
// The types of `KernelOpInterface` (NNInterfaces.td): the function of the runtime that an op calls,
// its arguments, and the float types of the op.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_KERNELCALL_H
#define DIALECT_NN_KERNELCALL_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <variant>

namespace mlir::nn {

/// The float types of an op where compute is narrowed to 16 bits.
enum class PrecisionClass {
  fixed,       ///< those of the model: operands that were narrowed are widened again
  any,         ///< operands may be narrowed; results keep their types
  narrow,      ///< 16 bits: products, whose sums are formed in f32
  first,       ///< the type of operand 0, to which all others are cast
  common,      ///< 16 bits where all operands have them
  elementwise, ///< the widest of the operands; a constant has any type that it is exact in
};

/// Operands and results, by index, that may share bytes if their types are equal: the kernel reads
/// an element before it writes it.
using InPlacePairs = SmallVector<std::pair<unsigned, unsigned>, 2>;

/// A struct of runtime/program/KernelArguments.h: its name, and its fields in order.
class ShapeArgument {
public:
  struct Number {
    double value;
    bool single; ///< a float, else a double
  };
  using Value = std::variant<int64_t, bool, Number, SmallVector<int64_t, 4>>;
  struct Field {
    StringRef name; ///< a literal
    Value value;
  };

  ShapeArgument() = default;
  explicit ShapeArgument(std::string type) : type(std::move(type)) {}

  ShapeArgument &field(StringRef name, int64_t value) { return add(name, value); }
  ShapeArgument &field(StringRef name, bool value) { return add(name, value); }
  ShapeArgument &field(StringRef name, ArrayRef<int64_t> values) {
    return add(name, SmallVector<int64_t, 4>(values));
  }
  ShapeArgument &single(StringRef name, const APFloat &value) {
    return add(name, Number{value.convertToDouble(), true});
  }
  ShapeArgument &number(StringRef name, const APFloat &value) {
    return add(name, Number{value.convertToDouble(), false});
  }

  StringRef getType() const { return type; }
  ArrayRef<Field> getFields() const { return fields; }

private:
  ShapeArgument &add(StringRef name, Value value) {
    fields.push_back({name, std::move(value)});
    return *this;
  }

  std::string type;
  SmallVector<Field, 0> fields;
};

/// A call of the runtime: `callee(shape, operands, results)`.
struct KernelCall {
  /// Empty where the runtime has no function: code generation then writes loops.
  StringRef callee;
  ShapeArgument shape;
  bool anyElement = false;      ///< for elements of every type, not for f32 and bf16 alone
  bool resultsFirst = false;    ///< before the operands, of which there may be any number
  unsigned optionalResults = 0; ///< number of trailing results that are left out if unused
  bool hasLoops = false;        ///< loops can replace the call, with constants as operands

  KernelCall() = default;
  /// The function has the name of the op.
  KernelCall(Operation *op, ShapeArgument shape)
      : callee(op->getName().stripDialect()), shape(std::move(shape)) {}
};

/// The product of `sizes`.
inline int64_t elementsOf(ArrayRef<int64_t> sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  return elements;
}

} // namespace mlir::nn

#endif // DIALECT_NN_KERNELCALL_H
