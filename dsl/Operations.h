//===- Operations.h - the operations of a model -----------------*- C++ -*-===//
//
// Operands of an operation have one element type; shapes are equal, or the shorter
// is the trailing part of the longer and is repeated along its leading dimensions.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_OPERATIONS_H
#define DSL_OPERATIONS_H

#include "dsl/Model.h"
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

namespace fsdp::dsl {

/// Sizes of names that the shapes do not determine.
using Sizes = std::map<std::string, int64_t>;

// Structured operations, in the notation of einsum and einops.

/// einsum("bsd,df->bsf", x, w): one letter per dimension, summed over the letters that the result
/// lacks.
Tensor einsum(const std::string &notation, Located lhs, Located rhs);
/// rearrange("b s (h d) -> b h s d", x, {{"h", 12}}): reshape and transpose. `sizes` has the sizes
/// that do not follow from the shape of the input and one another.
Tensor rearrange(const std::string &notation, Located input, const Sizes &sizes = {});
/// repeat("d -> b s d", x, {{"b", 8}, {"s", 16}}): broadcast along new dimensions.
Tensor repeat(const std::string &notation, Located input, const Sizes &sizes);
/// reduceSum("b s d -> b s", x), and likewise the mean and the maximum.
Tensor reduceSum(const std::string &notation, Located input);
Tensor reduceMean(const std::string &notation, Located input);
Tensor reduceMax(const std::string &notation, Located input);

struct ScanOptions {
  bool exclusive = false; ///< a sum leaves out the element at its own position
  bool reverse = false;   ///< from the last element down
};
/// scanSum("b s d", "s", x): at each position of s the sum of all elements up to it.
Tensor scanSum(const std::string &notation, const std::string &along, Located input,
               const ScanOptions &options = {});

// Arithmetic, element by element.

Tensor operator+(Located lhs, Located rhs);
Tensor operator-(Located lhs, Located rhs);
Tensor operator*(Located lhs, Located rhs);
Tensor operator/(Located lhs, Located rhs);
Tensor operator+(Located lhs, double rhs);
Tensor operator-(Located lhs, double rhs);
Tensor operator*(Located lhs, double rhs);
Tensor operator/(Located lhs, double rhs);
Tensor operator+(double lhs, Located rhs);
Tensor operator-(double lhs, Located rhs);
Tensor operator*(double lhs, Located rhs);
Tensor operator/(double lhs, Located rhs);
Tensor operator-(Located input);
Tensor maximum(Located lhs, Located rhs);
Tensor minimum(Located lhs, Located rhs);
Tensor exp(Located input);
Tensor log(Located input);
Tensor sqrt(Located input);
Tensor rsqrt(Located input);
Tensor tanh(Located input);
Tensor abs(Located input);
Tensor square(Located input);
Tensor relu(Located input);

/// 1 where the integers or floats are equal (or lhs is greater), else 0, as `f32`.
Tensor equal(Located lhs, Located rhs);
Tensor greater(Located lhs, Located rhs);
/// `yes` where `condition` is not 0, else `no`.
Tensor select(Located condition, Located yes, Located no);

/// x * P(X <= x) for a standard normal X: by the approximation with a tanh, and exactly.
Tensor gelu(Located input);
Tensor geluErf(Located input);
/// x / (1 + exp(-x)).
Tensor silu(Located input);

// Parts.

/// `size` elements along `dim`, from `start` on.
Tensor slice(Located input, int64_t dim, int64_t start, int64_t size);
/// `low` zeros before and `high` after along `dim`.
Tensor pad(Located input, int64_t dim, int64_t low, int64_t high);
/// The inputs one after the other along `dim`: concat({x, y}, 1), or those of a vector.
Tensor concat(std::initializer_list<Located> inputs, int64_t dim, Where where = Where::here());
Tensor concat(const std::vector<Tensor> &inputs, int64_t dim, Where where = Where::here());
Tensor concat(const std::vector<Located> &inputs, int64_t dim, Where where = Where::here());

// Rows.

/// Softmax cross-entropy of each row of logits with its label: the loss of each row.
Tensor crossEntropy(Located logits, Located labels);
/// The index of the largest element of each row, i32.
Tensor argmax(Located input);
/// The exponentials of each row, divided by their sum.
Tensor softmax(Located input);
/// Rows of mean 0 and variance 1, times `scale` plus `bias`, which are as long as a row.
Tensor layerNorm(Located input, Located scale, Located bias, double eps = 1e-5);
/// Rows of mean square 1, times `scale`.
Tensor rmsNorm(Located input, Located scale, double eps = 1e-6);
/// Row `ids[...]` of `table` at each position of `ids`.
Tensor embedding(Located table, Located ids);

// Regularization.

/// In training, a random fraction `rate` of the elements, drawn anew in each step, becomes 0, and
/// the others are multiplied by 1 / (1 - rate); in evaluation, and where `rate` is 0, the input
/// itself. Draws are a function of `name`, which must be unique among the dropouts of the model; by
/// default it is that of the operation, `fc1.dropout`.
Tensor dropout(Located input, double rate, const std::string &name = "");

// Attention.

/// A tensor or a parameter, or none.
struct OptionalOperand {
  OptionalOperand() = default;
  OptionalOperand(const Tensor &tensor, Where where = Where::here())
      : operand(Located(tensor, where)) {}
  OptionalOperand(const Parameter &parameter, Where where = Where::here())
      : operand(Located(parameter, where)) {}

  std::optional<Located> operand = std::nullopt;
};

struct AttentionOptions {
  /// A query attends to no key after its position. The last query is at the last key: with fewer
  /// queries than keys, query t attends to the keys 0 to t + keys - queries.
  bool causal = true;
  /// Of the products of queries and keys; 1 / sqrt(width) by default.
  std::optional<double> scale = std::nullopt;
  /// Ids, i32 (batch, keys), of the documents that a row of tokens consists of: a query attends
  /// only to keys with the id at its position. Any ids that are equal within a document and differ
  /// between neighbours; they have no gradient.
  std::optional<Tensor> documents = std::nullopt;
  /// The maximum number of keys that a causal query attends to, its own position included: the keys
  /// j with i - window < j <= i, as the `sliding_window` of transformers. Time and flops grow with
  /// it instead of with the number of keys.
  std::optional<int64_t> window = std::nullopt;
  /// The scaled products x become softcap * tanh(x / softcap), before bias and mask.
  std::optional<double> softcap = std::nullopt;
  /// Added to the scaled and capped products, (heads, queries, keys) or (1, queries, keys) for all
  /// heads: `alibi`, `relativeBias`, or a mask, whose -infinity hides a key. f32, in mixed
  /// precision too; gradients go through it, summed over the batch.
  OptionalOperand bias = {};
};

/// Softmax attention of `q` (batch, heads, queries, width) to `k` and `v` (batch, groups, keys,
/// width); each group of keys and values serves heads / groups heads.
Tensor attention(Located q, Located k, Located v, const AttentionOptions &options = {});
/// The same with the dimensions in another order, "b t h d" as a projection produces them: batch,
/// positions, heads and, always last, width.
Tensor attention(const std::string &order, Located q, Located k, Located v,
                 const AttentionOptions &options = {});
/// The same where one tensor holds queries, keys and values, 0 to 2 along n: "b t n h d".
Tensor attention(const std::string &order, Located qkv, const AttentionOptions &options = {});

// Biases of attention. The last query is at the last key, as `attention` has it.

/// ALiBi (Press et al., 2022; BLOOM, MPT): (heads, queries, keys), minus a slope of the head times
/// the distance between query and key. Slopes are 2^(-8 i / n) for i of 1 to n if n, the number of
/// heads, is a power of 2; otherwise those of the largest power of 2 below n, followed by every
/// second slope of twice that number. There are no parameters.
Tensor alibi(Model &model, int64_t heads, int64_t queries, int64_t keys,
             Where where = Where::here());

struct RelativeBiasOptions {
  bool causal = true;        ///< no buckets for keys after the query, as in T5's decoder
  int64_t maxDistance = 128; ///< from here on all are in the last bucket
};
/// T5's relative positions (Raffel et al., 2020): (heads, queries, keys) of the rows of `table`
/// (buckets, heads): a key has the row of its distance's bucket. Half of the buckets have one
/// distance each, the others growing ranges of distances. Without `causal`, half of all buckets are
/// for keys after the query.
Tensor relativeBias(Located table, int64_t queries, int64_t keys,
                    const RelativeBiasOptions &options = {});

// Documents that are packed into rows of tokens. `tokens` are integers (batch, positions), which
// are split with the batch; these functions have no derivatives. A document ends with the token
// `end`.

/// The ids of documents: how many have ended before a position, i32.
Tensor documentIds(Located tokens, int64_t end);
/// The positions in documents, each from 0 on, i32. The first document of a row begins with it.
Tensor documentPositions(Located tokens, int64_t end);
/// 1 where the token after a position, its target, is of the same document, and 0 at the tokens
/// `end`, f32: for weightedMean.
Tensor documentMask(Located tokens, int64_t end);
/// 1 where the token after a position, its target, lies in a span, else 0, f32: for weightedMean. A
/// span follows the tokens `begin` and extends up to and including the next tokens `end`; it ends
/// at the latest with the token `documentEnd`, or with the row. `begin` and `end` have up to 16
/// tokens. Tokens before a row are not known: it begins outside of spans.
Tensor spanMask(Located tokens, const std::vector<int64_t> &begin,
                const std::vector<int64_t> &end = {},
                std::optional<int64_t> documentEnd = std::nullopt);

// Rotary positions.

/// Rotations for contexts longer than a model was first trained with. The rate of pair i, which is
/// r = theta^(-2 i / width) per position, becomes s r + (1 - s) r / factor.
struct RopeScaling {
  enum Ramp { None, Index, Rate };

  double factor = 1;
  /// The argument of the share s: s is 0, or linear in i or r, 0 at `from` and 1 at `to`, and
  /// limited to [0, 1].
  Ramp ramp = None;
  double from = 0, to = 0;
  double magnitude = 1; ///< the results are multiplied by it

  /// "Position interpolation", Chen et al., 2023: every rate divided by the factor.
  static RopeScaling linear(double factor);
  /// Llama 3.1's: rates that turn less than `low` times in `context` positions are divided by the
  /// factor, and those that turn more than `high` times are not. `high` is above `low`.
  static RopeScaling llama3(double factor, double low, double high, int64_t context);

  struct Yarn {
    double factor = 1;
    int64_t context = 2048;               ///< positions of the first training
    double betaFast = 32, betaSlow = 1;   ///< turns in these positions
    bool truncate = true;                 ///< whole indices of pairs
    std::optional<double> magnitude = {}; ///< by default 0.1 ln(factor) + 1
  };
  /// YaRN, Peng et al., 2023, as transformers computes it, for rows of `width` numbers.
  static RopeScaling yarn(const Yarn &yarn, double theta, int64_t width);
};

/// `input` (..., positions, width) with the pairs i and i + width/2 of each row rotated by
/// position * theta^(-2 i / width), or by that scaled.
Tensor rope(Located input, double theta = 10000, const RopeScaling &scaling = {});
/// The same where the positions are dimension t of the order, such as "b t h d".
Tensor rope(const std::string &order, Located input, double theta = 10000,
            const RopeScaling &scaling = {});
/// The same at given positions, i32 (batch, positions): the batch is dimension 0 of the order.
Tensor rope(const std::string &order, Located input, Located positions, double theta = 10000,
            const RopeScaling &scaling = {});

// Shardings.

/// `input` itself, with a requested split over axes of the mesh: an entry for each dimension, `_`
/// for an unsharded one, axes joined by `+` major to minor, `+?` (or `?` alone) at the end if
/// propagation may add more: constrain(h, "?,_,tensor"). A part of an axis is also allowed:
/// `tensor:(2)4` is the 4 positions after the first 2. Axes that the mesh of a compilation lacks,
/// or that have size 1 there, split nothing. Constraints of `priority` 0 reach the whole model
/// before those of priority 1, and so on. Throws ModelError for an axis that is named twice, for
/// parts that overlap and for another number of entries than dimensions.
Tensor constrain(Located input, const std::string &sharding, int64_t priority = 0);

/// `input` itself, the residual stream of a model whose weights are split over the axis `tensor`:
/// dimension `dim`, its positions, and those of values computed from it separately for each
/// position (norms, residual sums, dropout) are split over `tensor` too, between the products
/// (sequence parallelism). Applied to the embedding, it covers all blocks. --sequence-parallel
/// turns it off, or on if `tensor` does not divide the positions. An axis `context` splits these
/// positions too. Throws ModelError if there is no such dimension.
Tensor sequenceParallel(Located input, int64_t dim = 1);

// Numbers of a step.

/// The mean of all elements, as a sum (in double) and a count.
Average mean(Located values);
/// The mean of `values` weighted by `weights` (same shape), e.g. 0 for ignored tokens. Where the
/// weights of a batch are all 0, it is 0, and so are the gradients of a loss.
Average weightedMean(Located values, Located weights);

// Functions for finding errors. They report on the global batch, for every mesh, and do not change
// a bit of the trained numbers. Evaluations leave them out. They may be in a checkpoint.

/// Logs in each step minimum, maximum and mean of the elements of `value` that are finite, and how
/// many are not, as "NAME.min", "NAME.max", "NAME.mean" and "NAME.nan". For a parameter: its
/// gathered value at this use.
void print(Located value, const std::string &name);
/// A step in which an element of `value`, floats, is not finite changes no weight, and the run ends
/// with an error that contains `name`, or continues as `--on-nan` specifies. Logs how many as
/// "NAME.check".
void check(Located value, const std::string &name);

} // namespace fsdp::dsl

#endif // DSL_OPERATIONS_H
