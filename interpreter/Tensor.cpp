//===- Tensor.cpp - a dense tensor of doubles or integers -----------------===//

#include "interpreter/Tensor.h"
#include "dialect/nn/KernelCall.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

Tensor::Tensor(RankedTensorType type)
    : type(type), floats(isa<FloatType>(type.getElementType())),
      elements(std::make_shared<std::vector<Element>>(type.getNumElements(), Element{0.0})) {}

Tensor Tensor::splat(RankedTensorType type, double value) {
  Tensor result(type);
  Element element;
  if (result.floats)
    element.f = value;
  else
    element.i = wrapTo(truncate(value), type.getElementType());
  result.elements->assign(result.elements->size(), element);
  return result;
}

Element Tensor::poisonElement(bool isFloat) {
  Element element;
  if (isFloat)
    element.f = std::numeric_limits<double>::quiet_NaN();
  else
    element.i = -0x5eadbeef;
  return element;
}

Tensor Tensor::poison(RankedTensorType type) {
  Tensor result(type);
  Element element = poisonElement(result.floats);
  if (type.getElementType().isInteger(1))
    element.i = 1;
  result.elements->assign(result.elements->size(), element);
  return result;
}

static double toDouble(APFloat value) {
  bool lossy = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return value.convertToDouble();
}

Tensor Tensor::fromAttribute(DenseElementsAttr attribute) {
  auto type = cast<RankedTensorType>(attribute.getType());
  Tensor result(type);
  auto element = [&](auto value) {
    Element e;
    if constexpr (std::is_same_v<decltype(value), APFloat>)
      e.f = toDouble(value);
    else
      e.i = value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue();
    return e;
  };
  if (attribute.isSplat()) {
    Element e = result.floats ? element(attribute.getSplatValue<APFloat>())
                              : element(attribute.getSplatValue<APInt>());
    result.elements->assign(result.elements->size(), e);
    return result;
  }
  Element *out = result.elements->data();
  if (result.floats)
    for (APFloat value : attribute.getValues<APFloat>())
      *out++ = element(value);
  else
    for (APInt value : attribute.getValues<APInt>())
      *out++ = element(value);
  return result;
}

Element *Tensor::mutableData() {
  if (elements.use_count() > 1)
    elements = std::make_shared<std::vector<Element>>(*elements);
  return elements->data();
}

double Tensor::getNumber(int64_t index) const {
  return floats ? getFloat(index) : static_cast<double>(getInt(index));
}

void Tensor::setNumber(int64_t index, double value) {
  Element &element = mutableData()[index];
  if (floats)
    element.f = value;
  else
    element.i = wrapTo(truncate(value), type.getElementType());
}

Tensor Tensor::viewAs(RankedTensorType other) const {
  assert(other.getNumElements() == size() && floats == isa<FloatType>(other.getElementType()) &&
         "a view has the same elements");
  Tensor result = *this;
  result.type = other;
  return result;
}

bool Tensor::equals(const Tensor &other) const {
  if (type != other.type)
    return false;
  for (int64_t i = 0; i < size(); ++i) {
    if (!floats ? getInt(i) != other.getInt(i)
                : getFloat(i) != other.getFloat(i) &&
                      !(std::isnan(getFloat(i)) && std::isnan(other.getFloat(i))))
      return false;
  }
  return true;
}

Extents::Extents(RankedTensorType type, int64_t dim)
    : outer(nn::elementsOf(type.getShape().take_front(dim))), size(type.getDimSize(dim)),
      inner(nn::elementsOf(type.getShape().drop_front(dim + 1))) {}

Rows::Rows(RankedTensorType type)
    : count(nn::elementsOf(type.getShape().drop_back())), width(type.getShape().back()) {}

void interpreter::copyAlong(int64_t dim, int64_t shift, const Tensor &from, Tensor &to) {
  const Extents source(from.getType(), dim), target(to.getType(), dim);
  const int64_t begin = std::max<int64_t>(0, -shift);
  const int64_t end = std::min(source.size, target.size - shift);
  Element *elements = to.mutableData();
  for (int64_t o = 0; o < source.outer && begin < end; ++o)
    std::copy_n(from.data() + (o * source.size + begin) * source.inner,
                (end - begin) * source.inner,
                elements + (o * target.size + begin + shift) * source.inner);
}

Tensor interpreter::joinParts(RankedTensorType type, int64_t dim, ArrayRef<Tensor> parts) {
  Tensor whole(type);
  int64_t at = 0;
  for (const Tensor &part : parts) {
    copyAlong(dim, at, part, whole);
    at += part.getType().getDimSize(dim);
  }
  return whole;
}

Tensor interpreter::takePart(const Tensor &whole, RankedTensorType type, int64_t dim,
                             int64_t index) {
  Tensor part(type);
  copyAlong(dim, -index * type.getDimSize(dim), whole, part);
  return part;
}

double mlir::fsdp::interpreter::roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  if (type.isBF16() && std::isfinite(value)) {
    // To float with the last bit set if that is not exact, so that the second rounding cannot
    // mistake a value close to a tie for a tie.
    float single = static_cast<float>(value);
    uint32_t bits = llvm::bit_cast<uint32_t>(single);
    if (single != value && std::isfinite(single)) {
      bits -= std::abs(single) > std::abs(value);
      bits |= 1;
    }
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
    return llvm::bit_cast<float>(bits);
  }
  APFloat rounded(value);
  bool lossy = false;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
  return toDouble(rounded);
}

int64_t mlir::fsdp::interpreter::truncate(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  return value < -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

int64_t mlir::fsdp::interpreter::wrapTo(int64_t value, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return value & 1;
  return bits >= 64 ? value : llvm::SignExtend64(value, bits);
}
