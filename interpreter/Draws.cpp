//===- Draws.cpp ----------------------------------------------------------===//

#include "interpreter/Draws.h"

#include "interpreter/Rounding.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

static uint64_t hashName(StringRef name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

Draws::Draws(uint64_t seed, StringRef name, uint64_t step)
    : key(mix(seed + 0x9E3779B97F4A7C15u * (mix(hashName(name)) | 1))), step(step) {}

float Draws::uniform(uint64_t index) const {
  return static_cast<float>(words(index / 4)[index % 4] >> 8) * 0x1p-24f;
}

float Draws::normal(uint64_t index) const {
  const auto block = words(index / 4);
  const int pair = index % 4 & 2;
  const double radius = std::sqrt(-2.0 * std::log((block[pair] + 1.0) * 0x1p-32));
  const double angle = 6.283185307179586476925 * (block[pair + 1] * 0x1p-32);
  return static_cast<float>(radius * (index & 1 ? std::sin(angle) : std::cos(angle)));
}

std::array<uint32_t, 4> Draws::words(uint64_t group) const {
  std::array<uint32_t, 4> counter = {uint32_t(group), uint32_t(group >> 32), uint32_t(step),
                                     uint32_t(step >> 32)};
  std::array<uint32_t, 2> round = {uint32_t(key), uint32_t(key >> 32)};
  for (int i = 0; i < 10; ++i) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * counter[0];
    const uint64_t p1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ round[0], uint32_t(p1),
               uint32_t(p0 >> 32) ^ counter[3] ^ round[1], uint32_t(p0)};
    round = {round[0] + 0x9E3779B9u, round[1] + 0xBB67AE85u};
  }
  return counter;
}

Tensor interpreter::drop(DropoutOp op, Numerics numerics, const Draws &draws, const Tensor &input,
                         int64_t microbatch,
                         llvm::function_ref<int64_t(ArrayRef<StringAttr>)> rankIndex) {
  RankedTensorType type = input.getType();
  Rounding round(type.getElementType(), numerics);
  ArrayRef<int64_t> whole = op.getGlobalShape();
  double rate = op.getRate().convertToDouble(), scale = round(1 / (1 - rate));
  SmallVector<int64_t> first;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    bool isCut = op.getAlong() && static_cast<int64_t>(*op.getAlong()) == dim;
    int64_t rows = op.getOver() ? op.getRankDimSize(dim) : type.getDimSize(dim);
    first.push_back(rankIndex(op.getAxes(dim)) * rows +
                    (isCut ? microbatch * type.getDimSize(dim) : 0));
  }
  Tensor result(type);
  Element *to = result.mutableData();
  for (int64_t i = 0; i < result.size(); ++i) {
    uint64_t index = 0, stride = 1;
    for (int64_t dim = type.getRank() - 1, rest = i; dim >= 0; --dim) {
      index += (first[dim] + rest % type.getDimSize(dim)) * stride;
      rest /= type.getDimSize(dim);
      stride *= whole[dim];
    }
    to[i].f = draws.uniform(index) >= rate ? round(input.getFloat(i) * scale) : 0;
  }
  return result;
}
