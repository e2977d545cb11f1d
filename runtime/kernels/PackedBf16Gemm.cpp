//===- PackedBf16Gemm.cpp --------------------------------------------------===//

#include "runtime/kernels/PackedBf16Gemm.h"

#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workers.h"
#include "runtime/kernels/RowOrder.h"

#include <algorithm>
#ifdef __AVX512BF16__
#include "runtime/kernels/VnniPacking.h"
#include "runtime/numerics/BFloat16.h"
#endif

namespace fsdp::rt {

namespace {

constexpr std::int64_t kBlock = kVnniBlock, kBytes = sizeof(bf16);
/// Sizes of a packed block of rows and of a panel of columns: together they leave room in a cache
/// of 2 MiB.
constexpr std::int64_t kLeftBytes = std::int64_t(1) << 20, kPanelBytes = std::int64_t(1) << 19;
/// Of all of a right side that is packed at once.
constexpr std::int64_t kRightBytes = std::int64_t(12) << 20;
/// Of sums that wait for their next part.
constexpr std::int64_t kSumBytes = std::int64_t(3) << 19;
/// Terms of one part of a sum, at most, and rows of a block where so many do not fit.
constexpr std::int64_t kTerms = 1024, kRows = 512;
/// Rows of a block if the packed right side stays in the cache: few, so that the next use of the
/// rows finds them in the cache as well.
constexpr std::int64_t kFewRows = 128, kCachedBytes = std::int64_t(5) << 18;
/// Terms that 32 rows and columns are summed over at once: both sides stay in the first cache.
constexpr std::int64_t kChunk = 256, kMaxChunk = 384;

constexpr std::int64_t cuts(std::int64_t extent, std::int64_t by) { return (extent + by - 1) / by; }
constexpr std::int64_t roundUp(std::int64_t extent) { return cuts(extent, kBlock) * kBlock; }

/// The extent of parts of at most `most`: equal multiples of 32 but for the last.
std::int64_t evenParts(std::int64_t extent, std::int64_t most) {
  most = std::max(most / kBlock * kBlock, kBlock);
  return roundUp(cuts(extent, cuts(extent, most)));
}

std::int64_t chunkOf(std::int64_t terms) {
  return evenParts(terms, terms <= kMaxChunk ? kMaxChunk : kChunk);
}

} // namespace

bool PackedBf16Gemm::repays(const Shape &s) {
  return pairInstructions() != PairInstructions::None && s.rows >= 2 * kBlock &&
         s.columns >= 2 * kBlock && s.terms >= kBlock;
}

PackedBf16Gemm::PackedBf16Gemm(const Shape &s, PairInstructions instructions)
    : shape(s), instructions(instructions) {
  blockTerms = s.terms <= 3 * kTerms / 2 ? roundUp(s.terms) : evenParts(s.terms, kTerms);
  const bool parts = blockTerms < s.terms;
  const std::int64_t rows = std::max(kLeftBytes / (blockTerms * kBytes), kRows);
  const std::int64_t rightBytes = roundUp(s.columns) * roundUp(s.terms) * kBytes;
  const bool cached = !parts && s.rows > kFewRows && rightBytes <= kCachedBytes;
  keepsRight = cached || (!parts && s.rows > rows && rightBytes <= kRightBytes);
  blockRows = evenParts(s.rows, cached ? kFewRows : rows);
  groupColumns = parts ? evenParts(s.columns, kSumBytes / (blockRows * std::int64_t(sizeof(float))))
                       : roundUp(s.columns);
  // For two threads, which would wait for a thread with an additional block; each block packs the
  // right side.
  if (const std::int64_t blocks = cuts(s.rows, blockRows); parts && blocks * groups() % 2 == 1)
    blockRows = evenParts(s.rows, (s.rows + blocks) / (blocks + 1));
  panelColumns = evenParts(std::min(groupColumns, s.columns),
                           std::clamp<std::int64_t>(kPanelBytes / (blockTerms * kBytes), 128, 512));
  leftCount = blockRows * blockTerms;
  rightCount = (keepsRight ? roundUp(s.columns) : panelColumns) * blockTerms;
  sumCount = parts ? blockRows * groupColumns : kBlock * panelColumns;
}

std::int64_t PackedBf16Gemm::groups() const { return cuts(shape.columns, groupColumns); }

std::size_t PackedBf16Gemm::pieces() const {
  return static_cast<std::size_t>(cuts(shape.rows, blockRows) * groups());
}

std::size_t PackedBf16Gemm::workspaceBytes() const {
  // A right side that is kept is shared.
  const std::size_t slots = slotsOfPieces(pieces());
  return static_cast<std::size_t>(leftCount * kBytes) * slots +
         static_cast<std::size_t>(rightCount * kBytes) * (keepsRight ? 1 : slots) +
         static_cast<std::size_t>(sumCount) * sizeof(float) * slots;
}

#ifdef __AVX512BF16__

namespace {

/// Bytes of a line of the caches.
constexpr std::size_t kLine = 64;

constexpr std::size_t count(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Chunks of terms one after the other, of each of them the rows; all filled up with zeros.
void packLeft(PackedBf16Gemm::Side x, std::int64_t rows, std::int64_t terms, const bf16 *from,
              bf16 *to) {
  const std::int64_t chunk = chunkOf(terms);
  for (std::int64_t begin = 0; begin < terms; begin += chunk) {
    const std::int64_t width = std::min(chunk, terms - begin), stride = roundUp(width);
    if (x.term == 1)
      for (std::int64_t row = 0; row < rows; row += kBlock)
        pairs::copyRows({from + row * x.line + begin, x.line, count(std::min(kBlock, rows - row)),
                         count(width)},
                        to + row * stride, count(stride));
    else
      for (std::int64_t term = 0; term < width; term += kBlock)
        pairs::packColumns({from + (begin + term) * x.term, x.term,
                            count(std::min(kBlock, width - term)), count(rows)},
                           to + term, count(stride));
    to += roundUp(rows) * stride;
  }
}

/// Panels of 32 columns, in the layout of Bf16MicroKernel.
void packRight(PackedBf16Gemm::Side x, std::int64_t columns, std::int64_t terms, const bf16 *from,
               bf16 *to) {
  const std::int64_t panel = roundUp(terms) * kBlock;
  if (x.term == 1)
    for (std::int64_t column = 0; column < columns; column += kBlock, to += panel)
      pairs::packTransposed(
          {from + column * x.line, x.line, count(std::min(kBlock, columns - column)), count(terms)},
          to);
  else
    for (std::int64_t term = 0; term < terms; term += kBlock)
      pairs::packPairs(
          {from + term * x.term, x.term, count(std::min(kBlock, terms - term)), count(columns)},
          to + term * kBlock, count(panel));
}

/// Rows of sums, bypassing the caches; whole lines of c, except for the remainder of 32 columns.
void stream(const float *sums, std::int64_t sumStride, std::int64_t rows, std::int64_t columns,
            float *c, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row, sums += sumStride, c += stride) {
    std::int64_t column = 0;
    for (; column + 16 <= columns; column += 16)
      _mm512_stream_ps(c + column, _mm512_loadu_ps(sums + column));
    // Behind the last row's sums the workspace may end.
    const auto rest = static_cast<__mmask16>(pairs::firstWords(count(columns - column)));
    _mm512_mask_storeu_ps(c + column, rest, _mm512_maskz_loadu_ps(rest, sums + column));
  }
}

/// Up to 32 rows of sums, `sumStride` floats apart, rounded to the type of c.
template <class Out>
void store(const float *sums, std::int64_t sumStride, std::int64_t rows, std::int64_t columns,
           bool add, Out *c, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row, sums += sumStride, c += stride)
    for (std::int64_t column = 0; column < columns; column += 32) {
      const __mmask32 words = pairs::firstWords(count(columns - column));
      const auto low = static_cast<__mmask16>(words), high = static_cast<__mmask16>(words >> 16);
      __m512 first = _mm512_loadu_ps(sums + column), second = _mm512_loadu_ps(sums + column + 16);
      Out *to = c + column;
      if constexpr (sizeof(Out) == sizeof(float)) {
        if (add) {
          first = _mm512_add_ps(first, _mm512_maskz_loadu_ps(low, to));
          second = _mm512_add_ps(second, _mm512_maskz_loadu_ps(high, to + 16));
        }
        _mm512_mask_storeu_ps(to, low, first);
        _mm512_mask_storeu_ps(to + 16, high, second);
      } else {
        if (add) {
          const __m512i before = _mm512_maskz_loadu_epi16(words, to);
          const __m512i lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(before));
          const __m512i upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(before, 1));
          first = _mm512_add_ps(first, _mm512_castsi512_ps(_mm512_slli_epi32(lower, 16)));
          second = _mm512_add_ps(second, _mm512_castsi512_ps(_mm512_slli_epi32(upper, 16)));
        }
        _mm512_mask_storeu_epi16(to, words, pairs::narrow(first, second));
      }
    }
}

} // namespace

/// One block of rows by one panel of columns by one part of the sum.
struct PackedBf16Gemm::Block {
  const bf16 *left, *right;
  float *sums;
  std::int64_t sumStride, sumRows; ///< between rows; 0 where each 32 rows use the same memory
  char *c;
  std::int64_t rows, columns, terms;
  bool first, last; ///< part of the sum
  bool streams;     ///< the result passes the caches by
};

void PackedBf16Gemm::multiply(const Block &x) const {
  // Separately for each block: the epilogue of finished rows may use the processor's matrix unit.
  const PairMultiplier multiplier(instructions);
  const std::int64_t chunk = chunkOf(x.terms), allTerms = roundUp(x.terms);
  const std::int64_t size = static_cast<std::int64_t>(sizeInBytes(shape.out));
  for (std::int64_t row = 0; row < x.rows; row += kBlock) {
    const std::int64_t rows = std::min(kBlock, x.rows - row);
    char *c = x.c + row * shape.stride * size;
    // Floats are summed in the result, except those adjacent to other memory.
    const bool inPlace =
        shape.out == DType::F32 && !shape.add && x.first && x.last && rows == kBlock && !x.streams;
    const std::int64_t direct = inPlace ? x.columns / kBlock * kBlock : 0;
    float *sums = x.sums + row * x.sumRows;
    for (std::int64_t term = 0; term < x.terms; term += chunk) {
      const std::int64_t terms = std::min(chunk, allTerms - term);
      const auto perform = [&](std::int64_t begin, std::int64_t end, float *to,
                               std::int64_t stride) {
        if (begin < end)
          multiplier({count(kBlock), count(end - begin), count(terms), count(terms),
                      count(allTerms * kBlock), count(stride)},
                     x.left + term * roundUp(x.rows) + row * terms,
                     x.right + begin * allTerms + term * kBlock, to, !x.first || term > 0);
      };
      perform(0, direct, reinterpret_cast<float *>(c), shape.stride);
      perform(direct, roundUp(x.columns), sums + direct, x.sumStride);
    }
    if (!x.last || direct == x.columns)
      continue;
    const std::int64_t columns = x.columns - direct;
    if (x.streams)
      stream(sums, x.sumStride, rows, columns, reinterpret_cast<float *>(c), shape.stride);
    else if (shape.out == DType::F32)
      store(sums + direct, x.sumStride, rows, columns, shape.add,
            reinterpret_cast<float *>(c) + direct, shape.stride);
    else
      store(sums, x.sumStride, rows, columns, shape.add, reinterpret_cast<bf16 *>(c), shape.stride);
  }
}

bool PackedBf16Gemm::run(const bf16 *a, const bf16 *b, void *c, void *workspace,
                         EpilogueCallback done) const {
  const std::size_t slots = slotsOfPieces(pieces());
  const std::size_t rights = keepsRight ? 1 : slots;
  bf16 *const lefts = static_cast<bf16 *>(workspace), *const right =
                                                          lefts + slots * count(leftCount);
  float *const allSums = reinterpret_cast<float *>(right + rights * count(rightCount));
  const bool parts = blockTerms < shape.terms;
  const std::int64_t size = static_cast<std::int64_t>(sizeInBytes(shape.out));
  // Gradients of weights are not read soon, unless an epilogue processes rows.
  const bool streams =
      shape.out == DType::F32 && !shape.add && !done.call &&
      count(shape.rows * shape.columns * size) >= kStreamingBytes &&
      (reinterpret_cast<std::uintptr_t>(c) | count(shape.stride * size)) % kLine == 0;
  // A single thread packs each panel when it first needs it, and multiplies by it from the cache.
  const bool packsFirst = keepsRight && slots > 1;
  const bool inOrder = done.callColumns && slots > 1;
  const bool tells =
      done.call &&
      (slots == 1 || (groups() == 1 && (!inOrder || RowOrder::repays(slots, pieces()))));
  RowOrder order(done, shape.rows, blockRows);
  const auto packPanel = [&](std::int64_t column, std::int64_t columns, std::int64_t term,
                             std::int64_t terms, bf16 *to) {
    packRight(shape.right, columns, terms, b + column * shape.right.line + term * shape.right.term,
              to);
  };
  if (packsFirst)
    forEachPiece(count(cuts(shape.columns, panelColumns)), [&](std::size_t panel, std::size_t) {
      const std::int64_t column = static_cast<std::int64_t>(panel) * panelColumns;
      packPanel(column, std::min(panelColumns, shape.columns - column), 0, shape.terms,
                right + column * blockTerms);
    });

  forEachPiece(pieces(), [&](std::size_t piece, std::size_t slot) {
    bf16 *const left = lefts + slot * count(leftCount);
    bf16 *const panels = right + (keepsRight ? 0 : slot * count(rightCount));
    float *const sums = allSums + slot * count(sumCount);
    const std::int64_t row = static_cast<std::int64_t>(piece) / groups() * blockRows;
    const std::int64_t group = static_cast<std::int64_t>(piece) % groups() * groupColumns;
    const std::int64_t rows = std::min(blockRows, shape.rows - row);
    const std::int64_t groupEnd = std::min(group + groupColumns, shape.columns);
    for (std::int64_t term = 0; term < shape.terms; term += blockTerms) {
      const std::int64_t terms = std::min(blockTerms, shape.terms - term);
      packLeft(shape.left, rows, terms, a + row * shape.left.line + term * shape.left.term, left);
      for (std::int64_t column = group; column < groupEnd; column += panelColumns) {
        const std::int64_t columns = std::min(panelColumns, groupEnd - column);
        bf16 *panel = panels + (keepsRight ? column * blockTerms : 0);
        if (!keepsRight || (row == 0 && !packsFirst))
          packPanel(column, columns, term, terms, panel);
        multiply({left, panel, sums + (parts ? column - group : 0),
                  parts ? groupColumns : panelColumns, parts ? groupColumns : 0,
                  static_cast<char *>(c) + (row * shape.stride + column) * size, rows, columns,
                  terms, term == 0, term + terms == shape.terms, streams});
      }
    }
    if (streams)
      _mm_sfence();
    if (tells && inOrder)
      order.complete(piece);
    else if (tells && groupEnd == shape.columns)
      done.call(done.self, row, row + rows);
  });
  return tells || !done.call;
}

#else // never called: nothing repays

void PackedBf16Gemm::multiply(const Block &) const {}
bool PackedBf16Gemm::run(const bf16 *, const bf16 *, void *, void *, EpilogueCallback) const {
  return true;
}

#endif

} // namespace fsdp::rt
