//===- Notation.cpp - einsum and einops strings ---------------------------===//

#include "dialect/nn/Notation.h"
#include "dialect/nn/TensorSize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nn;

/// Fails with `message`; silent where the caller has no use for diagnostics.
static LogicalResult fail(Notation::EmitError emitError, const Twine &message) {
  if (emitError)
    emitError() << message;
  return failure();
}

static bool isNameStart(char c) { return llvm::isAlpha(c) || c == '_'; }
static bool isNamePart(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Splits "lhs -> rhs" at its only arrow.
static FailureOr<std::pair<StringRef, StringRef>> splitAtArrow(StringRef text,
                                                               Notation::EmitError emitError) {
  size_t arrow = text.find("->");
  if (arrow == StringRef::npos)
    return fail(emitError, "notation '" + text + "' has no '->'");
  StringRef rhs = text.substr(arrow + 2);
  if (rhs.contains("->"))
    return fail(emitError, "notation '" + text + "' has more than one '->'");
  return std::make_pair(text.take_front(arrow), rhs);
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

FailureOr<Notation> Notation::parseEinsum(StringRef text, EmitError emitError) {
  auto sides = splitAtArrow(text, emitError);
  if (failed(sides))
    return failure();
  auto parseTensor = [&](StringRef letters) -> FailureOr<NotationTensor> {
    NotationTensor tensor;
    for (char c : letters) {
      if (c == ' ')
        continue;
      if (!llvm::isAlpha(c))
        return fail(emitError,
                    "notation '" + text + "' has '" + Twine(c) + "' where a letter is expected");
      tensor.push_back({std::string(1, c)});
    }
    return tensor;
  };

  Notation notation;
  SmallVector<StringRef> operands;
  sides->first.split(operands, ',');
  for (StringRef operand : operands) {
    FailureOr<NotationTensor> tensor = parseTensor(operand);
    if (failed(tensor))
      return failure();
    notation.operands.push_back(*tensor);
  }
  FailureOr<NotationTensor> result = parseTensor(sides->second);
  if (failed(result))
    return failure();
  notation.result = *result;
  return notation;
}

FailureOr<Notation> Notation::parseEinops(StringRef text, EmitError emitError) {
  auto sides = splitAtArrow(text, emitError);
  if (failed(sides))
    return failure();
  auto parseTensor = [&](StringRef rest) -> FailureOr<NotationTensor> {
    NotationTensor tensor;
    bool inGroup = false;
    while (!(rest = rest.ltrim(' ')).empty()) {
      char c = rest.front();
      if (c == '(' || c == ')') {
        if ((c == '(') == inGroup)
          return fail(emitError, "notation '" + text + "' has an unbalanced '" + Twine(c) + "'");
        inGroup = c == '(';
        if (inGroup)
          tensor.push_back({});
        rest = rest.drop_front();
        continue;
      }
      if (c == '1' && (rest.size() == 1 || !isNamePart(rest[1]))) {
        if (!inGroup)
          tensor.push_back({});
        rest = rest.drop_front();
        continue;
      }
      if (!isNameStart(c))
        return fail(emitError,
                    "notation '" + text + "' has '" + Twine(c) + "' where a name is expected");
      StringRef name = rest.take_while(isNamePart);
      rest = rest.drop_front(name.size());
      if (inGroup)
        tensor.back().push_back(name.str());
      else
        tensor.push_back({name.str()});
    }
    if (inGroup)
      return fail(emitError, "notation '" + text + "' has an unbalanced '('");
    return tensor;
  };

  Notation notation;
  FailureOr<NotationTensor> operand = parseTensor(sides->first);
  if (failed(operand))
    return failure();
  notation.operands.push_back(*operand);
  FailureOr<NotationTensor> result = parseTensor(sides->second);
  if (failed(result))
    return failure();
  notation.result = *result;
  return notation;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string Notation::printEinsum() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](const NotationTensor &tensor) {
    for (const NotationDim &dim : tensor)
      llvm::interleave(dim, os, "");
  };
  llvm::interleave(operands, os, print, ",");
  os << "->";
  print(result);
  return text;
}

std::string Notation::printEinops() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](const NotationTensor &tensor) {
    auto printDim = [&](const NotationDim &dim) {
      if (dim.empty()) {
        os << '1';
        return;
      }
      if (dim.size() > 1)
        os << '(';
      llvm::interleave(dim, os, " ");
      if (dim.size() > 1)
        os << ')';
    };
    llvm::interleave(tensor, os, printDim, " ");
  };
  for (const NotationTensor &operand : operands) {
    print(operand);
    if (!operand.empty())
      os << ' ';
  }
  os << "->";
  if (!result.empty())
    os << ' ';
  print(result);
  return text;
}

//===----------------------------------------------------------------------===//
// Names and sizes
//===----------------------------------------------------------------------===//

SmallVector<std::string> Notation::names() const {
  SmallVector<std::string> names;
  auto collect = [&](const NotationTensor &tensor) {
    for (const NotationDim &dim : tensor)
      for (const std::string &name : dim)
        if (!llvm::is_contained(names, name))
          names.push_back(name);
  };
  llvm::for_each(operands, collect);
  collect(result);
  return names;
}

namespace {
/// One dimension of one shape, as an equation: product of `names` = `size`.
struct Equation {
  const NotationDim &names;
  int64_t size;
  std::string where;
};
} // namespace

FailureOr<llvm::StringMap<int64_t>> Notation::solveSizes(ArrayRef<ArrayRef<int64_t>> operandShapes,
                                                         ArrayRef<int64_t> resultShape,
                                                         const llvm::StringMap<int64_t> &known,
                                                         EmitError emitError) const {
  if (operandShapes.size() != operands.size())
    return fail(emitError, "notation has " + Twine(operands.size()) + " operands, got " +
                               Twine(operandShapes.size()));
  SmallVector<Equation> equations;
  auto collect = [&](const NotationTensor &tensor, ArrayRef<int64_t> shape,
                     const Twine &what) -> LogicalResult {
    if (tensor.size() != shape.size())
      return fail(emitError, what + " has rank " + Twine(shape.size()) + ", the notation names " +
                                 Twine(tensor.size()) + " dimensions");
    for (auto [index, dim] : llvm::enumerate(tensor))
      equations.push_back({dim, shape[index], ("dimension " + Twine(index) + " of " + what).str()});
    return success();
  };
  for (auto [index, operand] : llvm::enumerate(operands)) {
    std::string what = operands.size() == 1 ? "the operand" : ("operand " + Twine(index)).str();
    if (failed(collect(operand, operandShapes[index], what)))
      return failure();
  }
  if (failed(collect(result, resultShape, "the result")))
    return failure();

  auto tooMany = [&](const Equation &equation) {
    return fail(emitError, equation.where + ": got " + Twine(equation.size) +
                               ", the sizes of its names multiply to 2^63 or more");
  };
  // Every round solves the dimensions that lack one size; each solved size may
  // make another dimension solvable.
  llvm::StringMap<int64_t> sizes(known);
  llvm::StringMap<std::string> origins;
  for (const auto &entry : known)
    origins[entry.first()] = "sizes";
  for (bool changed = true; changed;) {
    changed = false;
    for (const Equation &equation : equations) {
      int64_t product = 1;
      SmallVector<StringRef, 2> unknown;
      for (StringRef name : equation.names) {
        auto it = sizes.find(name);
        if (it == sizes.end())
          unknown.push_back(name);
        else if (__builtin_mul_overflow(product, it->second, &product))
          return tooMany(equation);
      }
      if (unknown.size() != 1 || product == 0)
        continue;
      if (equation.size % product != 0)
        return fail(emitError, equation.where + " is " + Twine(equation.size) +
                                   ", expected a multiple of " + Twine(product) + " to solve '" +
                                   unknown.front() + "'");
      sizes[unknown.front()] = equation.size / product;
      origins[unknown.front()] = equation.where;
      changed = true;
    }
  }
  for (const Equation &equation : equations) {
    int64_t product = 1;
    std::string reason;
    for (StringRef name : equation.names) {
      auto it = sizes.find(name);
      if (it == sizes.end())
        return fail(emitError, "the size of '" + name +
                                   "' does not follow from the shapes; give it in 'sizes'");
      if (__builtin_mul_overflow(product, it->second, &product))
        return tooMany(equation);
      if (origins[name] != equation.where)
        reason += (reason.empty() ? "'" : ", '") + name.str() + "' is " +
                  std::to_string(it->second) + " by " + origins[name];
    }
    if (product != equation.size)
      return fail(emitError, equation.where + ": got " + Twine(equation.size) + ", expected " +
                                 Twine(product) +
                                 (reason.empty() ? Twine() : " (" + Twine(reason) + ")"));
  }
  return sizes;
}

SmallVector<int64_t> mlir::nn::shapeOf(const NotationTensor &tensor,
                                       const llvm::StringMap<int64_t> &sizes) {
  SmallVector<int64_t> shape;
  for (const NotationDim &dim : tensor) {
    SmallVector<int64_t> factors;
    for (const std::string &name : dim)
      factors.push_back(sizes.lookup(name));
    // What does not fit is refused where the tensor of that shape is.
    shape.push_back(countElements(factors).value_or(INT64_MAX));
  }
  return shape;
}
