//===- KernelCall.h - the runtime call of an op -----------------*- C++ -*-===//
// The types of `KernelOpInterface` (NNInterfaces.td): the function of the runtime that an op calls,
// its arguments, and the float types of the op.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_KERNELCALL_H
#define DIALECT_NN_KERNELCALL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <utility>
#include <variant>

namespace mlir::nn {

/// One cotangent for each operand of an op, null where none is needed (DifferentiableOpInterface).
using Cotangents = FailureOr<SmallVector<Value>>;

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

/// A struct of the runtime (runtime/program/KernelArguments.h): its name, and its fields in order.
/// Without a name it is the value of its only field; without fields there is none.
class ShapeArgument {
public:
  struct Number {
    double value;
    bool single; ///< a float, else a double
  };
  /// A sum of terms factor * index, where `index` is this rank's among those over some axes; the
  /// factor alone without axes.
  struct RankTerm {
    int64_t factor;
    ArrayAttr over; ///< null: none
  };
  using RankSum = SmallVector<RankTerm, 2>;
  /// The number of this rank in a list of one for each of those over some axes.
  struct NumberOfRank {
    SmallVector<int64_t, 4> numbers;
    ArrayAttr over;
  };
  /// A C++ expression of names of the runtime.
  struct Expression {
    std::string text;
  };
  /// The key of the runtime's random numbers for this name.
  struct HashedName {
    std::string name;
  };
  using Pairs = SmallVector<std::pair<int64_t, int64_t>, 4>;
  using Value = std::variant<int64_t, bool, Number, SmallVector<int64_t, 4>, Pairs, RankSum,
                             NumberOfRank, Expression, HashedName>;
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
  ShapeArgument &pairs(StringRef name, Pairs values) { return add(name, std::move(values)); }
  ShapeArgument &rankIndex(StringRef name, ArrayAttr over) { return add(name, RankSum{{1, over}}); }
  ShapeArgument &rankSum(StringRef name, RankSum terms) { return add(name, std::move(terms)); }
  ShapeArgument &numberOfRank(StringRef name, SmallVector<int64_t, 4> numbers, ArrayAttr over) {
    return add(name, NumberOfRank{std::move(numbers), over});
  }
  ShapeArgument &expression(StringRef name, std::string text) {
    return add(name, Expression{std::move(text)});
  }
  ShapeArgument &hashedName(StringRef name, StringRef value) {
    return add(name, HashedName{value.str()});
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

/// The float types of the operands and results of a function of the runtime.
enum class KernelElements {
  single,      ///< f32 and bf16
  operandsF32, ///< f32 for operands
  any,
};

/// A call of the runtime: `callee(shape, operands, results)`. The effects of the op on the step
/// state determine whether the state is passed as well: before the operands and after the results.
struct KernelCall {
  /// Empty where the runtime has no function: code generation then writes loops.
  StringRef callee;
  ShapeArgument shape;
  KernelElements elements = KernelElements::single;
  unsigned optionalResults = 0; ///< number of trailing results that are left out if unused
  bool hasLoops = false;        ///< loops can replace the call, with constants as operands
  /// The numbers of operands that the function has or has not, and what marks them in a call: a
  /// function of the runtime that is applied to them.
  SmallVector<std::pair<unsigned, StringRef>, 2> marked = {};

  KernelCall() = default;
  /// The function has the name of the op.
  template <typename Op>
  KernelCall(Op op, ShapeArgument shape = {}, KernelElements elements = KernelElements::single)
      : callee(op->getName().stripDialect()), shape(std::move(shape)), elements(elements) {}
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
