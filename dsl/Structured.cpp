//===- Structured.cpp - operations in einsum and einops notation ----------===//

#include "dsl/ModelIR.h"
#include "dsl/Operations.h"

#include "dialect/nn/NNDialect.h"

using namespace mlir;

namespace fsdp::dsl {

/// The type of the result of notation `text`: parses it and solves all sizes that the operand
/// shapes and `known` determine; error messages go to the context's diagnostics, which
/// Model::create turns into a ModelError.
static FailureOr<RankedTensorType> inferResult(bool compact, const std::string &text,
                                               ArrayRef<RankedTensorType> operands,
                                               const Sizes &sizes, Location loc) {
  auto emitError = [&] { return mlir::emitError(loc); };
  FailureOr<nn::Notation> notation = compact ? nn::Notation::parseEinsum(text, emitError)
                                             : nn::Notation::parseEinops(text, emitError);
  if (failed(notation))
    return failure();
  llvm::StringMap<int64_t> known;
  for (const auto &[name, size] : sizes) {
    if (!llvm::is_contained(notation->names(), name))
      return emitError() << "sizes give '" << name << "', which notation '" << text
                         << "' does not name";
    if (size < 0)
      return emitError() << "sizes give '" << name << "' " << size << ", expected at least 0";
    known[name] = size;
  }
  if (notation->operands.size() != operands.size())
    return emitError() << "notation '" << text << "' has " << notation->operands.size()
                       << " operands, got " << operands.size();
  SmallVector<ArrayRef<int64_t>> shapes =
      llvm::map_to_vector(operands, [](RankedTensorType type) { return type.getShape(); });
  nn::Notation operandsOnly = *notation;
  operandsOnly.result.clear();
  FailureOr<llvm::StringMap<int64_t>> solved =
      operandsOnly.solveSizes(shapes, {}, known, emitError);
  if (failed(solved))
    return failure();
  for (const nn::NotationDim &dim : notation->result)
    for (const std::string &name : dim)
      if (!solved->count(name))
        return emitError() << "notation '" << text << "' does not determine the size of '" << name
                           << "'; give it";
  return RankedTensorType::get(nn::shapeOf(notation->result, *solved),
                               operands[0].getElementType());
}

/// The sizes among `sizes` (needed to find the shape of the result) that do not follow from both
/// shapes and one another: one canonical form per meaning. Null if all follow.
static DictionaryAttr neededSizes(OpBuilder &builder, const nn::Notation &notation,
                                  ArrayRef<int64_t> operand, ArrayRef<int64_t> result,
                                  const Sizes &sizes) {
  llvm::StringMap<int64_t> needed;
  for (const auto &[name, size] : sizes)
    needed[name] = size;
  for (const auto &[name, size] : sizes) {
    needed.erase(name);
    if (failed(notation.solveSizes({operand}, result, needed, nullptr)))
      needed[name] = size;
  }
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, size] : sizes)
    if (needed.contains(name))
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(size)));
  return entries.empty() ? DictionaryAttr() : builder.getDictionaryAttr(entries);
}

/// The operation `what` in `notation` on `operands`; `build` creates it with its result type.
static Tensor
createStructured(const char *what, bool compact, const std::string &notation,
                 ArrayRef<Located> operands, const Sizes &sizes,
                 llvm::function_ref<Value(OpBuilder &, Location, RankedTensorType)> build) {
  return create(
      what + (" '" + notation + "'"), operands, [&](OpBuilder &builder, Location loc) -> Value {
        FailureOr<RankedTensorType> type = inferResult(
            compact, notation,
            llvm::map_to_vector(operands, [](const Located &x) { return typeOf(x); }), sizes, loc);
        return succeeded(type) ? build(builder, loc, *type) : Value();
      });
}

Tensor einsum(const std::string &notation, Located lhs, Located rhs) {
  return createStructured("einsum", /*compact=*/true, notation, {lhs, rhs}, {},
                          [&](OpBuilder &builder, Location loc, RankedTensorType type) -> Value {
                            return nn::EinsumOp::create(builder, loc, type, notation, valueOf(lhs),
                                                        valueOf(rhs));
                          });
}

Tensor rearrange(const std::string &notation, Located input, const Sizes &sizes) {
  return createStructured(
      "rearrange", /*compact=*/false, notation, {input}, sizes,
      [&](OpBuilder &builder, Location loc, RankedTensorType type) -> Value {
        DictionaryAttr needed = neededSizes(builder, *nn::Notation::parseEinops(notation, nullptr),
                                            typeOf(input).getShape(), type.getShape(), sizes);
        return nn::RearrangeOp::create(builder, loc, type, notation, valueOf(input), needed);
      });
}

Tensor repeat(const std::string &notation, Located input, const Sizes &sizes) {
  return createStructured("repeat", /*compact=*/false, notation, {input}, sizes,
                          [&](OpBuilder &builder, Location loc, RankedTensorType type) -> Value {
                            return nn::RepeatOp::create(builder, loc, type, notation,
                                                        valueOf(input));
                          });
}

static Tensor reduce(const char *what, nn::Reduction kind, const std::string &notation,
                     const Located &input) {
  return createStructured(what, /*compact=*/false, notation, {input}, {},
                          [&](OpBuilder &builder, Location loc, RankedTensorType type) -> Value {
                            return nn::ReduceOp::create(builder, loc, type, kind, notation,
                                                        valueOf(input));
                          });
}

Tensor reduceSum(const std::string &notation, Located input) {
  return reduce("reduceSum", nn::Reduction::sum, notation, input);
}

Tensor reduceMean(const std::string &notation, Located input) {
  return reduce("reduceMean", nn::Reduction::mean, notation, input);
}

Tensor reduceMax(const std::string &notation, Located input) {
  return reduce("reduceMax", nn::Reduction::max, notation, input);
}

Tensor scanSum(const std::string &notation, const std::string &along, Located input,
               const ScanOptions &options) {
  requireFloat("scanSum", input);
  return createOp<nn::ScanSumOp>("scanSum '" + notation + "' along '" + along + "'", {input},
                                 typeOf(input), notation, along, valueOf(input), options.exclusive,
                                 options.reverse);
}

} // namespace fsdp::dsl
