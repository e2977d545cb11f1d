//===- AttentionRingTest.cpp - what rounding the blocks of a ring costs ---===//
//
// In bf16 the output and the gradients of each block are rounded before they are added up in f32.
// The kernels are those of programs, the arithmetic between them that of RankAttention.
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/kernels/AttentionReference.h"

using namespace fsdp::rt;

namespace {

constexpr std::uint32_t kLength = 512, kWidth = 64;

AttentionShape shapeOf(std::uint32_t length) {
  return rowMajor({1, 1, 1, length, length, kWidth, 0.125f, true});
}

std::vector<bf16> narrow(const Floats &values) { return {values.begin(), values.end()}; }

/// The rows of rank `rank` of several.
std::vector<bf16> partOf(const std::vector<bf16> &rows, std::uint32_t rank, std::uint32_t length) {
  const auto begin = rows.begin() + std::ptrdiff_t(rank) * length * kWidth;
  return {begin, begin + std::ptrdiff_t(length) * kWidth};
}

/// The root of the mean square of the differences, as a share of that of `expected`.
double errorOf(const Floats &values, const std::vector<double> &expected) {
  double differences = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = double(float(bf16(values[i]))) - expected[i];
    differences += difference * difference, squares += expected[i] * expected[i];
  }
  return std::sqrt(differences / squares);
}

struct Results {
  Floats out, dQ, dK, dV;
};

struct Errors {
  double out, dQ, dK, dV;
};

Errors errorsOf(const Results &results, const Expected &e) {
  return {errorOf(results.out, e.out), errorOf(results.dQ, e.dQ), errorOf(results.dK, e.dK),
          errorOf(results.dV, e.dV)};
}

/// Forward and backward of a ring of `ranks`; one rank has unsplit attention.
Results attendInRing(const Tensors &t, std::uint32_t ranks) {
  const std::uint32_t length = kLength / ranks;
  const std::size_t numbers = std::size_t(length) * kWidth;
  const std::vector<bf16> q = narrow(t.q), k = narrow(t.k), v = narrow(t.v), dOut = narrow(t.dOut);
  const auto placed = [&](std::uint32_t distance) {
    AttentionShape shape = shapeOf(length);
    shape.offset = static_cast<std::int32_t>(distance * length);
    return shape;
  };
  Results results;
  for (Floats *sums : {&results.dQ, &results.dK, &results.dV})
    sums->assign(std::size_t(kLength) * kWidth, 0);
  const auto add = [](Floats &sums, std::size_t at, const std::vector<bf16> &terms) {
    for (std::size_t i = 0; i < terms.size(); ++i)
      sums[at + i] += float(terms[i]);
  };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<bf16> ownQ = partOf(q, rank, length), ownD = partOf(dOut, rank, length);
    Floats out(numbers), sums(length);
    for (std::uint32_t distance = 0; distance <= rank; ++distance) {
      std::vector<bf16> block(numbers);
      Floats logSumExp(length);
      kernels::attention(placed(distance), ownQ.data(), partOf(k, rank - distance, length).data(),
                         partOf(v, rank - distance, length).data(), nullptr, nullptr, block.data(),
                         logSumExp.data());
      for (std::size_t row = 0; row < length; ++row) {
        const float top = distance == 0 ? logSumExp[row] : std::max(sums[row], logSumExp[row]);
        const float before = distance == 0 ? 0 : std::exp(sums[row] - top),
                    now = std::exp(logSumExp[row] - top);
        for (std::size_t i = row * kWidth; i < (row + 1) * kWidth; ++i)
          out[i] = out[i] * (before / (before + now)) + float(block[i]) * (now / (before + now));
        sums[row] = top + std::log(before + now);
      }
    }
    results.out.insert(results.out.end(), out.begin(), out.end());
    const std::vector<bf16> ownOut = narrow(out);
    for (std::uint32_t distance = 0; distance <= rank; ++distance) {
      std::vector<bf16> dQ(numbers), dK(numbers), dV(numbers);
      kernels::attentionGrad(
          placed(distance), ownQ.data(), partOf(k, rank - distance, length).data(),
          partOf(v, rank - distance, length).data(), nullptr, nullptr, ownOut.data(), sums.data(),
          ownD.data(), dQ.data(), dK.data(), dV.data());
      add(results.dQ, rank * numbers, dQ);
      add(results.dK, (rank - distance) * numbers, dK);
      add(results.dV, (rank - distance) * numbers, dV);
    }
  }
  return results;
}

// The bounds are those of docs/precision.md.
TEST(AttentionRingTest, OnBf16RoundedBlocksCostLittle) {
  for (const float deviation : {1.0f, 4.0f}) {
    std::mt19937 random(90);
    Tensors t = randomTensors(shapeOf(kLength), random);
    for (float &value : t.q)
      value *= deviation / 2; // of a deviation of 2
    for (float &value : t.k)
      value /= 2;
    for (Floats *values : {&t.q, &t.k, &t.v, &t.dOut})
      for (float &value : *values)
        value = float(bf16(value));
    const Expected exact = reference(shapeOf(kLength), t);
    const Errors whole = errorsOf(attendInRing(t, 1), exact);
    for (const std::uint32_t ranks : {2u, 8u}) {
      const Errors ring = errorsOf(attendInRing(t, ranks), exact);
      SCOPED_TRACE(testing::Message() << ranks << " ranks, deviation " << deviation);
      for (const auto &[name, one, several] : {std::tuple("out", whole.out, ring.out),
                                               {"dQ", whole.dQ, ring.dQ},
                                               {"dK", whole.dK, ring.dK},
                                               {"dV", whole.dV, ring.dV}}) {
        RecordProperty(std::to_string(ranks) + "_" + std::to_string(int(deviation)) + "_" + name,
                       std::to_string(several / one));
        EXPECT_LT(several, 1.75 * one) << name << " of one rank: " << one;
        EXPECT_LT(several, 6e-3) << name;
      }
    }
  }
}

} // namespace
