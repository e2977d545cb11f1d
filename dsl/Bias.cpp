//===- Bias.cpp - biases of attention by position -------------------------===//

#include "dsl/Operations.h"

#include <algorithm>
#include <cmath>

namespace fsdp::dsl {

/// 0, 1, 2, ...: exact in f32 up to 2^24.
static Tensor countUpTo(Model &model, int64_t size, Where where) {
  Tensor ones =
      repeat("-> n", Located(model.scalar(1, ElementType::f32, where), where), {{"n", size}});
  return scanSum("n", "n", Located(ones, where), {/*exclusive=*/true});
}

static void requirePositive(const char *what, const char *of, int64_t size, Where where) {
  if (size < 1)
    throw ModelError(where, std::string(what) + " got " + std::to_string(size) + " " + of +
                                ": expected at least 1");
}

Tensor alibi(Model &model, int64_t heads, int64_t queries, int64_t keys, Where where) {
  requirePositive("alibi", "heads", heads, where);
  requirePositive("alibi", "queries", queries, where);
  requirePositive("alibi", "keys", keys, where);
  auto located = [&](const Tensor &tensor) { return Located(tensor, where); };
  auto count = [&](int64_t size) { return located(countUpTo(model, size, where)); };
  // 2^-first, 2^-(first + step), ...
  auto slopesOf = [&](double first, double step, int64_t size) {
    Tensor exponents = located(count(size) * step) + first;
    return located(exp(located(located(exponents) * -std::log(2.0))));
  };
  int64_t power = 1; // the largest power of 2 that is not above the heads
  while (2 * power <= heads)
    power *= 2;
  const double step = 8.0 / static_cast<double>(power);
  Located slopes = slopesOf(step, step, power);
  if (heads > power)
    slopes = located(concat({slopes, slopesOf(step / 2, step, heads - power)}, 0, where));
  Located at = located(count(queries) + static_cast<double>(keys - queries));
  Located distance =
      located(abs(located(located(repeat("t -> t s", at, {{"s", keys}})) -
                          located(repeat("s -> t s", count(keys), {{"t", queries}})))));
  Located bias = located(located(repeat("h -> h t s", slopes, {{"t", queries}, {"s", keys}})) *
                         located(repeat("t s -> h t s", distance, {{"h", heads}})));
  return -bias;
}

/// The bucket of a key at `distance` after its query (negative before it), as in T5: computed in
/// f32, as transformers does.
static int64_t bucketOf(int64_t distance, int64_t buckets, const RelativeBiasOptions &options) {
  int64_t first = 0;
  if (!options.causal) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
  }
  const int64_t far = options.causal ? std::max<int64_t>(-distance, 0) : std::abs(distance),
                exact = buckets / 2;
  if (far < exact)
    return first + far;
  const float share = std::log(static_cast<float>(far) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(options.maxDistance) /
                                                  static_cast<double>(exact)));
  const auto more = static_cast<int64_t>(share * static_cast<float>(buckets - exact));
  return first + std::min(exact + more, buckets - 1);
}

Tensor relativeBias(Located table, int64_t queries, int64_t keys,
                    const RelativeBiasOptions &options) {
  const Where where = table.where;
  requirePositive("relativeBias", "queries", queries, where);
  requirePositive("relativeBias", "keys", keys, where);
  if (table.tensor.rank() != 2)
    throw ModelError(where, "relativeBias got a table of " + std::to_string(table.tensor.rank()) +
                                " dimensions: expected (buckets, heads)");
  const int64_t buckets = table.tensor.size(0), sides = options.causal ? 1 : 2;
  if (buckets % sides != 0 || buckets / sides < 2)
    throw ModelError(where, "relativeBias got " + std::to_string(buckets) + " buckets: expected " +
                                (options.causal ? "at least 2"
                                                : "an even number of at least 4, half of them for "
                                                  "keys behind the query"));
  if (const int64_t exact = buckets / sides / 2; options.maxDistance <= exact)
    throw ModelError(where, "relativeBias got a greatest distance of " +
                                std::to_string(options.maxDistance) + ": expected more than " +
                                std::to_string(exact) + ", which have buckets of their own");
  // A row for each distance of a key, from that of the first key to the last query on.
  std::vector<Located> runs;
  for (int64_t distance = 1 - keys, end; distance < queries; distance = end) {
    const int64_t bucket = bucketOf(distance, buckets, options);
    end = distance + 1;
    while (end < queries && bucketOf(end, buckets, options) == bucket)
      ++end;
    Tensor row = rearrange("1 h -> h", Located(slice(table, 0, bucket, 1), where));
    runs.emplace_back(repeat("h -> n h", Located(row, where), {{"n", end - distance}}), where);
  }
  Tensor rows = rearrange("n h -> h n", Located(concat(runs, 0, where), where));
  // Each query has these rows, shifted by one from the previous query: as one flat vector, of which
  // each query uses one number less than a row has.
  const int64_t distances = queries + keys - 1;
  Tensor line = rearrange(
      "h t n -> h (t n)",
      Located(repeat("h n -> h t n", Located(pad(rows, 1, 0, 1), where), {{"t", queries}}), where));
  Tensor shifted =
      rearrange("h (t n) -> h t n",
                Located(slice(line, 1, queries - 1, queries * distances), where), {{"t", queries}});
  return slice(shifted, 2, 0, keys);
}

} // namespace fsdp::dsl
