//===- Tensor.h - a dense tensor of doubles or integers ---------*- C++ -*-===//

#ifndef INTERPRETER_TENSOR_H
#define INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <vector>

namespace mlir::fsdp::interpreter {

/// How floats are computed: `exact` in double for all types; `typed` rounds each result to its
/// element type and accumulates as documented at the op; `kernel` is `typed` inside a kernel, where
/// 16-bit floats are held in f32.
enum class Numerics { exact, typed, kernel };

/// One element: `f` of a float tensor, `i` of an integer tensor (sign-extended; i1 is 0 or 1).
union Element {
  double f;
  int64_t i;
};

/// A row-major tensor with static shape. Copies share their elements until one of them is written.
class Tensor {
public:
  Tensor() = default;
  /// All elements are zero.
  explicit Tensor(RankedTensorType type);
  static Tensor splat(RankedTensorType type, double value);
  static Tensor fromAttribute(DenseElementsAttr attribute);
  /// The contents of places that must not be read: NaN, or an integer that no program uses.
  static Tensor poison(RankedTensorType type);
  static Element poisonElement(bool isFloat);

  RankedTensorType getType() const { return type; }
  bool isFloat() const { return floats; }
  int64_t size() const { return elements ? static_cast<int64_t>(elements->size()) : 0; }
  explicit operator bool() const { return elements != nullptr; }

  const Element *data() const { return elements->data(); }
  Element *mutableData();

  double getFloat(int64_t index) const { return data()[index].f; }
  int64_t getInt(int64_t index) const { return data()[index].i; }
  /// The element as a number, whatever the type.
  double getNumber(int64_t index) const;
  /// Stores a number: as it is into floats, truncated into integers.
  void setNumber(int64_t index, double value);

  /// The same elements, in the same order, with another shape or element type.
  Tensor viewAs(RankedTensorType other) const;
  /// True if types and all elements are the same, NaN being equal to NaN.
  bool equals(const Tensor &other) const;

private:
  RankedTensorType type;
  bool floats = true;
  std::shared_ptr<std::vector<Element>> elements;
};

/// A shape around one dimension: outer x size x inner elements.
struct Extents {
  int64_t outer, size, inner;

  Extents(RankedTensorType type, int64_t dim);
};

/// A tensor whose rows are its last dimension.
struct Rows {
  int64_t count, width;

  explicit Rows(RankedTensorType type);
};

/// Copies the elements that `from` and `to`, which differ along `dim` only, have in common: index 0
/// of `from` along it is index `shift` of `to`.
void copyAlong(int64_t dim, int64_t shift, const Tensor &from, Tensor &to);
/// `parts` one behind the other along `dim`, as a tensor of `type`: zero beyond them.
Tensor joinParts(RankedTensorType type, int64_t dim, ArrayRef<Tensor> parts);
/// Part number `index` of `whole` along `dim`, all parts having `type`: zero beyond `whole`.
Tensor takePart(const Tensor &whole, RankedTensorType type, int64_t dim, int64_t index);

/// `value` rounded to the float type `type` (nearest, ties to even).
double roundTo(double value, Type type);

/// `value` without its fraction as a 64-bit integer: the nearest one if it is outside their range,
/// 0 if it is NaN.
int64_t truncate(double value);

/// The low bits of `value` as an integer of `type`: sign-extended, i1 as 0 or 1.
int64_t wrapTo(int64_t value, Type type);

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_TENSOR_H
