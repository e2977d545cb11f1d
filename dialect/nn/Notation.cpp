//===- Notation.cpp - einsum and einops strings ---------------------------===//

#include "dialect/nn/Notation.h"
#include "dialect/nn/TensorSize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace mlir;
using namespace mlir::nn;

/// Fails with `message`; silent if the caller needs no diagnostics.
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
  auto parseTensor = [&](StringRef letters, NotationTensor &tensor) -> LogicalResult {
    tensor.reserve(letters.size());
    for (char c : letters) {
      if (c == ' ')
        continue;
      if (!llvm::isAlpha(c))
        return fail(emitError,
                    "notation '" + text + "' has '" + Twine(c) + "' where a letter is expected");
      tensor.emplace_back().emplace_back(1, c);
    }
    return success();
  };

  // In place: every verification of an einsum parses one.
  FailureOr<Notation> notation = Notation();
  SmallVector<StringRef> operands;
  sides->first.split(operands, ',');
  notation->operands.reserve(operands.size());
  for (StringRef operand : operands)
    if (failed(parseTensor(operand, notation->operands.emplace_back())))
      return failure();
  if (failed(parseTensor(sides->second, notation->result)))
    return failure();
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
  notation.operands.push_back(std::move(*operand));
  FailureOr<NotationTensor> result = parseTensor(sides->second);
  if (failed(result))
    return failure();
  notation.result = std::move(*result);
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
  std::optional<size_t> operand; ///< of the result where there is none
  size_t dimension;
};

/// The size of a name, and the equation that determined it (none for a known size).
struct Solved {
  StringRef name;
  int64_t size;
  const Equation *origin;
};
} // namespace

FailureOr<llvm::StringMap<int64_t>> Notation::solveSizes(ArrayRef<ArrayRef<int64_t>> operandShapes,
                                                         ArrayRef<int64_t> resultShape,
                                                         const llvm::StringMap<int64_t> &known,
                                                         EmitError emitError) const {
  // Builds texts for diagnostics only: every verification of a structured op runs this code.
  auto describe = [&](std::optional<size_t> operand) -> std::string {
    if (!operand)
      return "the result";
    return operands.size() == 1 ? "the operand" : ("operand " + Twine(*operand)).str();
  };
  auto where = [&](const Equation &equation) {
    return ("dimension " + Twine(equation.dimension) + " of " + describe(equation.operand)).str();
  };
  if (operandShapes.size() != operands.size())
    return fail(emitError, "notation has " + Twine(operands.size()) + " operands, got " +
                               Twine(operandShapes.size()));
  SmallVector<Equation, 12> equations;
  auto collect = [&](const NotationTensor &tensor, ArrayRef<int64_t> shape,
                     std::optional<size_t> operand) -> LogicalResult {
    if (tensor.size() != shape.size())
      return fail(emitError, describe(operand) + " has rank " + Twine(shape.size()) +
                                 ", the notation names " + Twine(tensor.size()) + " dimensions");
    for (auto [index, dim] : llvm::enumerate(tensor))
      equations.push_back({dim, shape[index], operand, index});
    return success();
  };
  for (auto [index, operand] : llvm::enumerate(operands))
    if (failed(collect(operand, operandShapes[index], index)))
      return failure();
  if (failed(collect(result, resultShape, std::nullopt)))
    return failure();

  auto tooMany = [&](const Equation &equation) {
    return fail(emitError, where(equation) + ": got " + Twine(equation.size) +
                               ", the sizes of its names multiply to 2^63 or more");
  };
  // Every round solves the dimensions that lack one size; each solved size may
  // make another dimension solvable.
  SmallVector<Solved, 12> solved;
  auto find = [&](StringRef name) {
    return llvm::find_if(solved, [&](const Solved &entry) { return entry.name == name; });
  };
  for (const auto &entry : known)
    solved.push_back({entry.first(), entry.second, nullptr});
  for (bool changed = true; changed;) {
    changed = false;
    for (const Equation &equation : equations) {
      int64_t product = 1;
      StringRef unknown;
      size_t unknowns = 0;
      for (StringRef name : equation.names) {
        const Solved *it = find(name);
        if (it == solved.end()) {
          unknown = unknowns == 0 ? name : unknown;
          ++unknowns;
        } else if (__builtin_mul_overflow(product, it->size, &product)) {
          return tooMany(equation);
        }
      }
      if (unknowns != 1 || product == 0)
        continue;
      if (equation.size % product != 0)
        return fail(emitError, where(equation) + " is " + Twine(equation.size) +
                                   ", expected a multiple of " + Twine(product) + " to solve '" +
                                   unknown + "'");
      solved.push_back({unknown, equation.size / product, &equation});
      changed = true;
    }
  }
  for (const Equation &equation : equations) {
    int64_t product = 1;
    for (StringRef name : equation.names) {
      const Solved *it = find(name);
      if (it == solved.end())
        return fail(emitError, "the size of '" + name +
                                   "' does not follow from the shapes; give it in 'sizes'");
      if (__builtin_mul_overflow(product, it->size, &product))
        return tooMany(equation);
    }
    if (product == equation.size)
      continue;
    std::string reason;
    for (StringRef name : equation.names) {
      const Solved &entry = *find(name);
      if (entry.origin != &equation)
        reason += (reason.empty() ? "'" : ", '") + name.str() + "' is " +
                  std::to_string(entry.size) + " by " +
                  (entry.origin ? where(*entry.origin) : "sizes");
    }
    return fail(emitError, where(equation) + ": got " + Twine(equation.size) + ", expected " +
                               Twine(product) +
                               (reason.empty() ? Twine() : " (" + Twine(reason) + ")"));
  }
  llvm::StringMap<int64_t> sizes(solved.size());
  for (const Solved &entry : solved)
    sizes.try_emplace(entry.name, entry.size);
  return sizes;
}

SmallVector<int64_t> mlir::nn::shapeOf(const NotationTensor &tensor,
                                       const llvm::StringMap<int64_t> &sizes) {
  SmallVector<int64_t> shape;
  for (const NotationDim &dim : tensor) {
    SmallVector<int64_t> factors;
    for (const std::string &name : dim)
      factors.push_back(sizes.lookup(name));
    // The verifier of a tensor of that shape rejects sizes that do not fit.
    shape.push_back(countElements(factors).value_or(INT64_MAX));
  }
  return shape;
}
