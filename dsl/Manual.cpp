//===- Manual.cpp - parts of a model in the terms of one rank -------------===//

#include "dsl/Manual.h"

#include "dsl/ModelIR.h"
#include "dsl/ShardingEntries.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

/// The axes of "fsdp+tensor"; calls `fail`, which throws, if `axes` is not a list of axes.
static SmallVector<StringAttr> parseAxes(Builder &builder, const std::string &axes,
                                         llvm::function_ref<void(const std::string &)> fail) {
  const SmallVector<ShardingEntry> entries = parseShardingEntries(builder, axes, 1, fail);
  if (entries.front().open || entries.front().axes.empty())
    fail("'" + axes + "' names no axes, expected axes of the mesh joined by '+'");
  return entries.front().axes;
}

/// `text` as the sharding of a value of this rank at the boundary of a region.
static ir::ShardingAttr parseBoundary(ModelBuilder &model, const std::string &text, int64_t rank,
                                      llvm::function_ref<void(const std::string &)> fail) {
  StringRef entries = StringRef(text).trim(), sums;
  if (size_t at = entries.find("partial("); at != StringRef::npos) {
    sums = entries.drop_front(at + StringRef("partial(").size());
    entries = entries.take_front(at).rtrim();
    if (!sums.consume_back(")"))
      fail("'" + text + "' ends with '" + sums.str() + "', expected ')'");
    if (sums.trim().empty())
      fail("'" + text + "' names no axes in 'partial()', expected axes joined by '+'");
  }
  SmallVector<SmallVector<StringAttr>> dims;
  SmallVector<StringAttr> unreduced;
  if (rank == 0 && !entries.empty())
    fail("'" + text +
         "' has entries for a number without dimensions, expected '' or "
         "'partial(AXES)'");
  if (rank > 0)
    for (const ShardingEntry &entry :
         parseShardingEntries(model.builder, entries.str(), rank, fail)) {
      if (entry.open)
        fail("'" + text +
             "' has '?', expected '_' or axes joined by '+': other axes are "
             "propagated in any case");
      dims.push_back(entry.axes);
    }
  if (!sums.empty())
    unreduced = parseAxes(model.builder, sums.str(), fail);
  for (StringAttr axis : unreduced)
    for (ArrayRef<StringAttr> dim : dims)
      if (llvm::is_contained(dim, axis))
        fail("'" + text + "' names axis '" + axis.str() +
             "' twice; an axis splits one dimension or is one of a sum");
  ir::MeshOp mesh = ir::getMeshOp(*model.module);
  return ir::ShardingAttr::getCanonical(FlatSymbolRefAttr::get(mesh), dims, unreduced);
}

std::vector<Tensor>
manual(const std::vector<ManualInput> &inputs, const std::vector<std::string> &outputs,
       const std::string &axes,
       const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function,
       Where where) {
  auto fail = [&](const std::string &message) { throw ModelError(where, "manual: " + message); };
  if (inputs.empty())
    fail("the region takes no inputs, expected at least one");
  ModelBuilder &model = builderOf(inputs.front().value);
  const SmallVector<StringAttr> over = parseAxes(model.builder, axes, fail);
  model.meshWith(over, /*isSized=*/true);
  std::vector<frontend::ModelValue> given;
  SmallVector<ir::ShardingAttr> shardings;
  for (const ManualInput &input : inputs) {
    given.push_back(input.value.tensor);
    shardings.push_back(parseBoundary(model, input.sharding, typeOf(input.value).getRank(), fail));
  }
  // Shardings at the boundary name axes of the region alone: the compiler splits over the others.
  auto requireOver = [&](ir::ShardingAttr sharding, const std::string &text) {
    SmallVector<StringAttr> named(sharding.getUnreduced());
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      llvm::append_range(named, sharding.getAxes(dim));
    for (StringAttr axis : named)
      if (!llvm::is_contained(over, axis))
        fail("'" + text + "' names axis '" + axis.str() + "', expected axes of the region, '" +
             axes + "'");
  };
  for (auto [input, sharding] : llvm::zip_equal(inputs, shardings))
    requireOver(sharding, input.sharding);
  std::vector<frontend::ModelValue> results = model.manual(
      given, shardings, ir::getAxisArray(&model.context, over),
      [&](ArrayRef<frontend::ModelValue> parts) {
        std::vector<Tensor> returned = function(std::vector<Tensor>(parts.begin(), parts.end()));
        if (returned.size() != outputs.size())
          fail("the function returns " + std::to_string(returned.size()) + " tensors, expected " +
               std::to_string(outputs.size()) + ", one for each output");
        ModelBuilder::ManualResults results;
        for (const auto &[tensor, text] : llvm::zip_equal(returned, outputs)) {
          if (!tensor.hasValue())
            fail("the function returns a tensor that holds no value");
          results.values.push_back(tensor);
          results.shardings.push_back(parseBoundary(model, text, typeOf(tensor).getRank(), fail));
          requireOver(results.shardings.back(), text);
        }
        return results;
      },
      where);
  return std::vector<Tensor>(results.begin(), results.end());
}

int64_t Model::axisSize(const std::string &axis) const { return builder->axisSize(axis); }

Tensor Model::axisIndex(const std::string &axes, Where where) {
  auto fail = [&](const std::string &message) { throw ModelError(where, "axisIndex: " + message); };
  return builder->axisIndex(
      ir::getAxisArray(&builder->context, parseAxes(builder->builder, axes, fail)), where);
}

namespace {
/// A collective of the model: its operand and axes.
struct Collective {
  Collective(const char *name, const Located &input, const std::string &axes)
      : name(name), input(input), model(builderOf(input)),
        over(ir::getAxisArray(
            &model.context,
            parseAxes(model.builder, axes, [&](const std::string &message) { fail(message); }))) {}

  [[noreturn]] void fail(const std::string &message) const { dsl::fail(name, {input}, message); }
  int64_t ranks() const { return ir::getMesh(*model.module).getSize(ir::getAxisNames(over)); }
  /// The type of the operand with `joined` times as many elements along one dimension as there are
  /// ranks, and a part of them along another; -1 is no dimension.
  RankedTensorType resized(int64_t joined, int64_t cut) const;
  /// The op with a result of `type`; `arguments` are between its operand and its axes.
  template <typename Op, typename... Arguments>
  Tensor create(RankedTensorType type, const Arguments &...arguments) const {
    auto region = dyn_cast<ir::ManualOp>(model.builder.getInsertionBlock()->getParentOp());
    if (!region)
      fail("is a collective outside of a manual region; call it in the function of 'manual'");
    for (Attribute axis : over)
      if (!llvm::is_contained(region.getOver(), axis))
        fail("is over axis '" + cast<StringAttr>(axis).str() +
             "', which is not one of the manual region around it; add it there");
    return createOp<Op>(name, {input}, type, valueOf(input), arguments..., over);
  }

  const char *name;
  const Located &input;
  ModelBuilder &model;
  ArrayAttr over;
};
} // namespace

RankedTensorType Collective::resized(int64_t joined, int64_t cut) const {
  SmallVector<int64_t> shape(typeOf(input).getShape());
  const int64_t rank = typeOf(input).getRank();
  for (int64_t dim : {joined, cut})
    if (dim < -1 || dim >= rank)
      fail("dimension is " + std::to_string(dim) + ", expected 0 to " + std::to_string(rank - 1));
  if (joined >= 0)
    shape[joined] *= ranks();
  if (cut >= 0 && shape[cut] % ranks() != 0)
    fail("dimension " + std::to_string(cut) + " is of size " + std::to_string(shape[cut]) +
         ", expected a multiple of " + std::to_string(ranks()) + " ranks");
  if (cut >= 0)
    shape[cut] /= ranks();
  return typeOf(input).clone(shape);
}

Tensor psum(Located input, const std::string &axes) {
  return Collective("psum", input, axes).create<ir::PsumOp>(typeOf(input));
}

Tensor pmax(Located input, const std::string &axes) {
  return Collective("pmax", input, axes).create<ir::PmaxOp>(typeOf(input));
}

Tensor pvary(Located input, const std::string &axes) {
  return Collective("pvary", input, axes).create<ir::PvaryOp>(typeOf(input));
}

Tensor pgather(Located input, int64_t dim, const std::string &axes) {
  const Collective own("pgather", input, axes);
  if (dim < 0)
    own.fail("dimension is " + std::to_string(dim) + ", expected at least 0");
  return own.create<ir::PgatherOp>(own.resized(dim, -1), dim);
}

Tensor psumScatter(Located input, int64_t dim, const std::string &axes) {
  const Collective own("psumScatter", input, axes);
  if (dim < 0)
    own.fail("dimension is " + std::to_string(dim) + ", expected at least 0");
  return own.create<ir::PsumScatterOp>(own.resized(-1, dim), dim);
}

Tensor pswap(Located input, int64_t split, int64_t concat, const std::string &axes) {
  const Collective own("pswap", input, axes);
  if (split < 0 || concat < 0)
    own.fail("dimensions are " + std::to_string(split) + " and " + std::to_string(concat) +
             ", expected at least 0");
  return own.create<ir::PswapOp>(own.resized(concat, split), split, concat);
}

Tensor ppermute(Located input, const std::vector<int64_t> &from, const std::string &axes) {
  return Collective("ppermute", input, axes).create<ir::PpermuteOp>(typeOf(input), from);
}

Tensor pshift(Located input, int64_t offset, bool wraps, const std::string &axes) {
  const int64_t ranks = Collective("ppermute", input, axes).ranks();
  std::vector<int64_t> from;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t source = rank - offset;
    from.push_back(wraps                           ? ((source % ranks) + ranks) % ranks
                   : source < 0 || source >= ranks ? -1
                                                   : source);
  }
  return ppermute(input, from, axes);
}

} // namespace fsdp::dsl
