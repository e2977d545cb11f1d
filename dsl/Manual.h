//===- Manual.h - parts of a model in the terms of one rank -----*- C++ -*-===//
//
//   // Each rank along fsdp has a part of the samples and of the weight's rows.
//   Tensor y = manual({{x, "fsdp,_"}, {w, "fsdp,_"}}, {"fsdp,_"}, "fsdp",
//                     [](const std::vector<Tensor> &own) -> std::vector<Tensor> {
//                       return {einsum("bi,io->bo", own[0], pgather(own[1], 0, "fsdp"))};
//                     }).front();
//
// docs/manual-regions.md has the rules. A model with regions is described for the mesh that it is
// compiled for: `Model::axisSize` is the number of ranks along an axis.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MANUAL_H
#define DSL_MANUAL_H

#include "dsl/Model.h"
#include <functional>
#include <string>
#include <vector>

namespace fsdp::dsl {

/// An input of a region, and its sharding: an entry for each dimension as in `constrain`, `_` or
/// axes of the region joined by `+`, and perhaps ` partial(tensor)`: over these axes the value is
/// the sum of the ranks' tensors. Over all other axes of the region the ranks have equal tensors. A
/// number without dimensions has no entries: "" or "partial(fsdp)".
struct ManualInput {
  Located value;
  std::string sharding;
};

/// The results of `function` on whole tensors. It computes the results of one rank along `axes`,
/// joined by `+`, from the rank's parts of the inputs; `outputs` are the shardings of these results
/// in the same notation. It may use these parts, numbers and nothing else of the model.
/// Errors: ModelError for sizes that the ranks do not divide, a result that varies over an axis
/// over which it is not split, a sum that is not formed where an operation is not linear.
std::vector<Tensor>
manual(const std::vector<ManualInput> &inputs, const std::vector<std::string> &outputs,
       const std::string &axes,
       const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function,
       Where where = Where::here());

// Collectives, in the function of a region, over axes of it joined by `+`. jax.lax has most of them
// under the same names.

/// The sum over ranks, on each of them.
Tensor psum(Located input, const std::string &axes);
/// The maximum over ranks, on each of them; without a gradient.
Tensor pmax(Located input, const std::string &axes);
/// The same value, as one that may differ from rank to rank: its gradient is the sum over ranks.
/// Operations do this to an operand that is equal on all ranks, where another one is not.
Tensor pvary(Located input, const std::string &axes);
/// The values of all ranks, joined along `dim` (jax.lax.all_gather, tiled).
Tensor pgather(Located input, int64_t dim, const std::string &axes);
/// The part along `dim` that this rank has of the sum over ranks (jax.lax.psum_scatter, tiled).
Tensor psumScatter(Located input, int64_t dim, const std::string &axes);
/// Parts along `split` go to the other ranks, and theirs are joined along `concat`
/// (jax.lax.all_to_all, tiled).
Tensor pswap(Located input, int64_t split, int64_t concat, const std::string &axes);
/// The value of rank `from[i]` on rank i, zeros where that is -1.
Tensor ppermute(Located input, const std::vector<int64_t> &from, const std::string &axes);
/// The value of the rank `offset` before this one: of the last ones on the first ones if it
/// `wraps`, else zeros there.
Tensor pshift(Located input, int64_t offset, bool wraps, const std::string &axes);

} // namespace fsdp::dsl

#endif // DSL_MANUAL_H
