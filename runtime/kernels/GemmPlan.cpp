//===- GemmPlan.cpp - matrix products through oneDNN ----------------------===//

#include "runtime/kernels/GemmPlan.h"

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/PackedBf16Gemm.h"
#include "runtime/kernels/RowOrder.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <optional>
#include <utility>

namespace fsdp::rt {

using dnnl::memory;

namespace {

/// Maximum rows of a block: the block's result, some megabytes, stays in the cache for its next
/// use. Threads share a product of fewer rows too.
constexpr std::int64_t kRows = 256, kFewRows = 1024;
std::int64_t blockRowsOf(std::int64_t rows) {
  const std::int64_t wanted = rows / (rows < kFewRows ? 4 : 8);
  return std::clamp<std::int64_t>((wanted + 31) / 32 * 32, 32, kRows);
}
/// Columns that are packed by one call, and of a strip of a product that is not packed.
constexpr std::int64_t kPackColumns = 256, kStripColumns = 512, kMaxStrips = 64;
/// Elements of a strip of the right side of a product of one row, as that of one token is, which
/// takes as long as reading that side: fewer do not repay a call and a thread. Of a side that lies
/// row by row, narrow strips would be read as short pieces that are far apart.
constexpr std::int64_t kTokenElements = 65536, kTokenColumns = 384;
/// A smaller product does not repay packing; half as many rows do where the right side is large.
constexpr std::int64_t kMinRows = 512, kMinColumns = 256, kMinTerms = 64;
constexpr std::size_t kLargeBytes = std::size_t(8) << 20;
/// Terms of a sum that is not cut, and of the parts of a longer one.
constexpr std::int64_t kMaxTerms = 1536, kTerms = 768;
/// Columns of a part in which sums over rows are formed, and parts of all columns.
constexpr std::int64_t kMinPart = 64, kMaxParts = 32;
/// Of a packed right side.
constexpr std::size_t kPackedBytes = std::size_t(12) << 20;

memory::data_type typeOf(DType type) {
  return type == DType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl::matmul::primitive_desc descriptor(const memory::desc &a, const memory::desc &b,
                                        const memory::desc &c, bool accumulate,
                                        const GemmLibrary &library) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(library.engine, a, b, c, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, library.engine);
#endif
}

bool isFast(const dnnl::matmul::primitive_desc &descriptor) {
  const std::string name = descriptor.impl_info_str();
  return name.find("brg") != std::string::npos;
}

/// oneDNN parallelizes with OpenMP, whose thread count is a setting of the calling thread.
void computeOnThisThreadAlone() {
  static thread_local const bool isSet = [] {
    if (auto *setThreads =
            reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      setThreads(1);
    return true;
  }();
  static_cast<void>(isSet);
}

/// The columns of a strip; 0: the product is not cut. It is cut by its shape alone.
std::int64_t stripColumnsOf(std::int64_t rows, std::int64_t columns, std::int64_t terms,
                            bool transposed) {
  const auto even = [&](std::int64_t least) {
    return std::max(least, (columns / kMaxStrips + 63) / 64 * 64);
  };
  if (rows == 1) {
    const std::int64_t wanted = (kTokenElements / std::max<std::int64_t>(terms, 1) + 63) / 64 * 64;
    const std::int64_t strip =
        even(std::max<std::int64_t>(wanted, transposed ? 64 : kTokenColumns));
    return columns >= 2 * strip ? strip : 0;
  }
  // oneDNN packs each strip of a transposed right side by itself.
  return transposed && columns >= 2 * kStripColumns && std::min(rows, terms) >= kMinTerms
             ? even(kStripColumns)
             : 0;
}

/// One call of oneDNN, with operands at other addresses each time. Threads of different slots may
/// run it at once.
class GemmCall {
public:
  GemmCall() = default;
  /// c = a * b, or c += a * b.
  GemmCall(const dnnl::matmul::primitive_desc &product, const GemmLibrary &library)
      : primitive(dnnl::matmul(product)) {
    bind({product.src_desc(), product.weights_desc(), product.dst_desc()},
         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, product.scratchpad_desc(), library);
  }

  /// A copy in another layout.
  GemmCall(const memory::desc &from, const memory::desc &to, const GemmLibrary &library) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc copy(library.engine, from, library.engine, to, attributes);
    primitive = dnnl::reorder(copy);
    bind({from, to}, {DNNL_ARG_FROM, DNNL_ARG_TO}, copy.scratchpad_desc(), library);
  }

  std::size_t scratchBytes() const { return scratchBytes_; }
  /// `pointers`: a, b, c of a product; from, to of a copy.
  void run(const GemmLibrary &library, std::size_t slot, std::array<const void *, 3> pointers,
           void *scratch) {
    computeOnThisThreadAlone();
    auto &[memories, arguments] = bindings[slot];
    for (int i = 0; i < operands; ++i)
      memories[i].set_data_handle(const_cast<void *>(pointers[i]));
    memories[3].set_data_handle(scratch);
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive.get(), library.streams[slot].get(), operands + 1, arguments.data());
    if (status != dnnl_success)
      throw dnnl::error(status, "could not execute a primitive");
  }

private:
  void bind(const std::vector<memory::desc> &descriptors, const std::vector<int> &names,
            const memory::desc &scratch, const GemmLibrary &library) {
    operands = static_cast<int>(names.size());
    bindings.resize(library.streams.size());
    for (auto &[memories, arguments] : bindings) {
      for (int i = 0; i < operands; ++i) {
        memories[i] = memory(descriptors[i], library.engine, nullptr);
        arguments[i] = {names[i], memories[i].get()};
      }
      memories[3] = memory(scratch, library.engine, nullptr);
      arguments[operands] = {DNNL_ARG_SCRATCHPAD, memories[3].get()};
    }
    scratchBytes_ = aligned(scratch.get_size());
  }

  struct Binding {
    std::array<dnnl::memory, 4> memories; ///< the last one is scratch
    std::array<dnnl_exec_arg_t, 4> arguments{};
  };
  dnnl::primitive primitive;
  std::vector<Binding> bindings; ///< of each slot
  int operands = 0;
  std::size_t scratchBytes_ = 0;
};

} // namespace

class GemmPlan::Calls {
public:
  Calls(const Gemm &g, DType in, DType out, const GemmLibrary &library)
      : a(normalized({g.m, g.k, g.a, typeOf(in), sizeInBytes(in)})),
        b(normalized({g.k, g.n, g.b, typeOf(in), sizeInBytes(in)})),
        c(normalized({g.m, g.n, g.c, typeOf(out), sizeInBytes(out)})), beta(g.beta) {
    if (c.strides.column != 1) {
      const auto transposed = [](Operand x) {
        std::swap(x.rows, x.columns);
        std::swap(x.strides.row, x.strides.column);
        return x;
      };
      swapped = true;
      std::swap(a, b);
      a = transposed(a), b = transposed(b), c = transposed(c);
    }
    for (int d = 0; d < 3; ++d)
      loops[d] = {g.batch[d], a.strides.batch[d], b.strides.batch[d], c.strides.batch[d]};
    if (const std::optional<PackedBf16Gemm::Shape> shape = packedShape())
      packedProduct.emplace(*shape);
    else if (wantsPanels())
      preparePanels(library);
    else
      prepareWhole(library);
  }

  void run(const GemmLibrary &library, const void *left, const void *right, void *result,
           EpilogueCallback done) {
    if (swapped)
      std::swap(left, right);
    const auto *from = static_cast<const char *>(left), *by = static_cast<const char *>(right);
    auto *to = static_cast<char *>(result);
    const EpilogueCallback perBlock = swapped ? EpilogueCallback() : done;
    bool told = true;
    if (packedProduct)
      told = packedProduct->run(
          reinterpret_cast<const bf16 *>(from), reinterpret_cast<const bf16 *>(by), to,
          Workspace::ofThread().reserve(packedProduct->workspaceBytes()), perBlock);
    else if (!panels.empty())
      told = runPanels(library, from, by, to, perBlock);
    else {
      runWhole(library, from, by, to);
      told = false;
    }
    if (done.call && (swapped || !told))
      complete(done);
  }

private:
  struct Operand {
    std::int64_t rows, columns;
    GemmStrides strides;
    dnnl::memory::data_type type;
    std::size_t bytes; ///< of an element
  };
  struct Loop {
    std::int64_t extent, a, b, c;
  };
  /// Columns [first, first + count) of the sum over [firstTerm, ...): one packed right side.
  struct Panel {
    std::int64_t column, term;
    std::vector<GemmCall> packs; ///< of kPackColumns each
    GemmCall transpose, transposeRest, product, productRest;
  };

  /// Makes the strides of extents of 1 such that one of the two is 1: oneDNN then recognizes a
  /// plain matrix, or its transpose, however the compiler came to write the strides.
  static Operand normalized(Operand x) {
    if (x.columns == 1)
      x.strides.column = 1;
    else if (x.rows == 1)
      x.strides.row = x.strides.column == 1 ? x.columns : 1;
    if (x.columns == 1 && x.rows == 1)
      x.strides.row = 1;
    return x;
  }

  static memory::desc describe(const Operand &x, std::int64_t batch = 1,
                               std::int64_t batchStride = 0) {
    if (batch == 1)
      return {{x.rows, x.columns}, x.type, {x.strides.row, x.strides.column}};
    return {{batch, x.rows, x.columns}, x.type, {batchStride, x.strides.row, x.strides.column}};
  }

  /// Tells of all rows of the caller's result.
  void complete(EpilogueCallback done) const {
    const std::int64_t rows = swapped ? c.columns : c.rows, columns = swapped ? c.rows : c.columns;
    if (!done.callColumns)
      return forEachPart(rows, std::size_t(columns), [&](std::int64_t begin, std::int64_t end) {
        done.call(done.self, begin, end);
      });
    const auto parts = std::clamp<std::int64_t>(columns / kMinPart, 1, kMaxParts);
    if (slotsOfPieces(std::size_t(parts)) == 1)
      return done.call(done.self, 0, rows);
    forEachPiece(std::size_t(parts), [&](std::size_t part, std::size_t) {
      done.callColumns(done.self, rows, {static_cast<std::int64_t>(part), parts});
    });
  }

  /// The product by the processor's bf16 instructions, if it has them and they are worth the
  /// packing.
  std::optional<PackedBf16Gemm::Shape> packedShape() const {
    const auto matrix = [](const Operand &x) {
      return x.strides.row == 1 || x.strides.column == 1;
    };
    if (b.type != memory::data_type::bf16 || c.strides.column != 1 || !matrix(a) || !matrix(b) ||
        loops[0].extent * loops[1].extent * loops[2].extent != 1)
      return std::nullopt;
    const PackedBf16Gemm::Shape shape{c.rows,
                                      c.columns,
                                      a.columns,
                                      {a.strides.row, a.strides.column},
                                      {b.strides.column, b.strides.row},
                                      c.strides.row,
                                      c.type == memory::data_type::bf16 ? DType::BF16 : DType::F32,
                                      beta != 0};
    return PackedBf16Gemm::repays(shape) ? std::optional(shape) : std::nullopt;
  }

  //===----------------------------------------------------------------------===//
  // One call for each index of the batch
  //===----------------------------------------------------------------------===//

  void prepareWhole(const GemmLibrary &library) {
    // The innermost batch dimension goes into the primitive where oneDNN is fast at that.
    int inner = 2;
    while (inner > 0 && loops[inner].extent == 1)
      --inner;
    const Loop batch = loops[inner];
    const auto prepare = [&](std::int64_t extent) {
      return descriptor(describe(a, extent, batch.a), describe(b, extent, batch.b),
                        describe(c, extent, batch.c), beta != 0, library);
    };
    if (batch.extent > 1 && batch.a > 0 && batch.b > 0 && batch.c > 0) {
      const dnnl::matmul::primitive_desc batched = prepare(batch.extent);
      if (isFast(batched)) {
        loops[inner].extent = 1;
        whole = GemmCall(batched, library);
        return;
      }
    }
    if (loops[0].extent * loops[1].extent * loops[2].extent == 1)
      stripColumns = stripColumnsOf(c.rows, c.columns, a.columns, b.strides.row == 1);
    if (stripColumns == 0) {
      whole = GemmCall(prepare(1), library);
      return;
    }
    const auto strip = [&](std::int64_t columns) {
      Operand by = b, to = c;
      by.columns = to.columns = columns;
      return GemmCall(descriptor(describe(a), describe(by), describe(to), beta != 0, library),
                      library);
    };
    whole = strip(stripColumns);
    if (const std::int64_t rest = c.columns % stripColumns)
      wholeRest = strip(rest);
  }

  void runWhole(const GemmLibrary &library, const char *from, const char *by, char *to) {
    const std::int64_t strips = stripColumns ? (c.columns + stripColumns - 1) / stripColumns : 1;
    const auto count =
        static_cast<std::size_t>(strips * loops[0].extent * loops[1].extent * loops[2].extent);
    const std::size_t bytes = std::max(whole.scratchBytes(), wholeRest.scratchBytes());
    auto *scratch =
        static_cast<char *>(Workspace::ofThread().reserve(slotsOfPieces(count) * bytes));
    forEachPiece(count, [&](std::size_t piece, std::size_t slot) {
      auto left = static_cast<std::int64_t>(piece);
      const std::int64_t column = left % strips * stripColumns;
      left /= strips;
      std::int64_t index[3];
      for (int d = 2; d >= 0; --d)
        index[d] = left % loops[d].extent, left /= loops[d].extent;
      const auto at = [&](std::int64_t Loop::*stride) {
        return index[0] * loops[0].*stride + index[1] * loops[1].*stride +
               index[2] * loops[2].*stride;
      };
      GemmCall &call = stripColumns && column + stripColumns > c.columns ? wholeRest : whole;
      call.run(library, slot,
               {from + at(&Loop::a) * std::int64_t(a.bytes),
                by + (at(&Loop::b) + column * b.strides.column) * std::int64_t(b.bytes),
                to + (at(&Loop::c) + column * c.strides.column) * std::int64_t(c.bytes)},
               scratch + slot * bytes);
    });
  }

  //===----------------------------------------------------------------------===//
  // Blocks of rows over packed panels
  //===----------------------------------------------------------------------===//

  bool wantsPanels() const {
    const std::size_t bytes = std::size_t(c.columns) * std::size_t(a.columns) * b.bytes;
    const bool large = loops[0].extent == 1 && loops[1].extent == 1 && loops[2].extent == 1 &&
                       c.rows >= (bytes >= kLargeBytes ? kMinRows / 2 : kMinRows) &&
                       c.columns >= kMinColumns && a.columns >= kMinTerms;
    // oneDNN packs a transposed right side of floats itself, a part at a time: for many rows our
    // packing is no faster.
    return large && (b.type == memory::data_type::bf16 || b.strides.column == 1 ||
                     (c.rows >= kFewRows && bytes <= kPackedBytes));
  }

  void preparePanels(const GemmLibrary &library) {
    // A long sum is split if its parts can be added up without rounding in between: the parts of
    // both sides then stay in the cache, and panels have enough columns.
    std::int64_t terms = a.columns;
    if (terms > kMaxTerms && c.type == memory::data_type::f32 &&
        (b.type == memory::data_type::bf16 || b.strides.column == 1)) {
      const std::int64_t parts = (terms + kTerms - 1) / kTerms;
      terms = ((terms + parts - 1) / parts + 63) / 64 * 64;
    }
    const auto fit = static_cast<std::int64_t>(kPackedBytes / (std::size_t(terms) * b.bytes));
    const std::int64_t columns = std::clamp<std::int64_t>(fit / 64 * 64, 64, c.columns);
    // oneDNN is slower at reading a transposed left side than at copying it: by a sixth for floats,
    // twice as slow for bf16, which is read in pairs of terms.
    const bool transposes = a.strides.column != 1;
    blockRows = blockRowsOf(c.rows);
    const std::int64_t rest = c.rows % blockRows;

    for (std::int64_t column = 0; column < c.columns; column += columns)
      for (std::int64_t term = 0; term < a.columns; term += terms) {
        Panel panel{column, term, {}, {}, {}, {}, {}};
        Operand by = b;
        by.rows = std::min(terms, a.columns - term);
        by.columns = std::min(columns, c.columns - column);
        const memory::desc free({by.rows, by.columns}, b.type, memory::format_tag::any);
        memory::desc packed;
        const auto prepare = [&](std::int64_t rows, const memory::desc &layout,
                                 GemmCall &transpose) {
          Operand from = a, to = c;
          from.rows = to.rows = rows;
          from.columns = by.rows, to.columns = by.columns;
          if (transposes) {
            const memory::desc before = describe(from);
            from.strides.row = from.columns, from.strides.column = 1;
            transpose = GemmCall(before, describe(from), library);
            transposedBytes = std::max(transposedBytes, aligned(describe(from).get_size()));
            scratchBytes = std::max(scratchBytes, transpose.scratchBytes());
          }
          const auto product =
              descriptor(describe(from), layout, describe(to), beta != 0 || term > 0, library);
          packed = product.weights_desc();
          GemmCall call(product, library);
          scratchBytes = std::max(scratchBytes, call.scratchBytes());
          return call;
        };
        panel.product = prepare(std::min(blockRows, c.rows), free, panel.transpose);
        packPanel(library, by, packed, panel);
        packedBytes = std::max(packedBytes, aligned(packed.get_size()));
        if (rest != 0 && c.rows > blockRows)
          panel.productRest = prepare(rest, memory::desc(packed), panel.transposeRest);
        panels.push_back(std::move(panel));
      }
  }

  /// Prepares the packing of a panel: strips of columns, or, in a layout without such strips, all
  /// at once.
  void packPanel(const GemmLibrary &library, const Operand &by, const memory::desc &packed,
                 Panel &panel) {
    try {
      for (std::int64_t column = 0; column < by.columns; column += kPackColumns) {
        Operand strip = by;
        strip.columns = std::min(kPackColumns, by.columns - column);
        panel.packs.emplace_back(
            describe(strip), packed.submemory_desc({by.rows, strip.columns}, {0, column}), library);
      }
    } catch (const dnnl::error &) {
      panel.packs.clear();
      panel.packs.emplace_back(describe(by), packed, library);
    }
    for (const GemmCall &pack : panel.packs)
      scratchBytes = std::max(scratchBytes, pack.scratchBytes());
  }

  /// Returns whether `done` was called for the rows.
  bool runPanels(const GemmLibrary &library, const char *from, const char *by, char *to,
                 EpilogueCallback done) {
    const auto blocks = static_cast<std::size_t>((c.rows + blockRows - 1) / blockRows);
    std::size_t strips = 1;
    for (const Panel &panel : panels)
      strips = std::max(strips, panel.packs.size());
    const std::size_t slots = slotsOfPieces(std::max(blocks, strips));
    const std::size_t bytes = transposedBytes + scratchBytes;
    auto *packed = static_cast<char *>(Workspace::ofThread().reserve(packedBytes + slots * bytes));
    const auto offset = [](const Operand &x, std::int64_t row, std::int64_t column) {
      return (row * x.strides.row + column * x.strides.column) * std::int64_t(x.bytes);
    };
    // Epilogues that add up over rows are called in the order of the rows.
    const bool inOrder = done.callColumns && slots > 1;
    const bool tells = done.call && (!inOrder || RowOrder::repays(slots, blocks));
    RowOrder order(done, c.rows, blockRows);
    for (Panel &panel : panels) {
      forEachPiece(panel.packs.size(), [&](std::size_t strip, std::size_t slot) {
        const std::int64_t column = panel.column + static_cast<std::int64_t>(strip) * kPackColumns;
        panel.packs[strip].run(library, slot, {by + offset(b, panel.term, column), packed, nullptr},
                               packed + packedBytes + slot * bytes);
      });
      forEachPiece(blocks, [&](std::size_t block, std::size_t slot) {
        char *transposed = packed + packedBytes + slot * bytes,
             *scratch = transposed + transposedBytes;
        const std::int64_t row = static_cast<std::int64_t>(block) * blockRows,
                           end = std::min(row + blockRows, c.rows);
        const bool full = end - row == std::min(blockRows, c.rows);
        const char *left = from + offset(a, row, panel.term);
        if (transposedBytes) {
          (full ? panel.transpose : panel.transposeRest)
              .run(library, slot, {left, transposed, nullptr}, scratch);
          left = transposed;
        }
        (full ? panel.product : panel.productRest)
            .run(library, slot, {left, packed, to + offset(c, row, panel.column)}, scratch);
        if (tells && inOrder && &panel == &panels.back())
          order.complete(block);
        else if (tells && &panel == &panels.back())
          done.call(done.self, row, end);
      });
    }
    return tells || !done.call;
  }

  Operand a, b, c;
  float beta;
  bool swapped = false; ///< computes c^T = b^T a^T, whose rows are contiguous
  Loop loops[3];
  std::optional<PackedBf16Gemm> packedProduct;
  GemmCall whole, wholeRest;     ///< of one index of the batch dimensions, or of a strip of columns
  std::int64_t stripColumns = 0; ///< 0: of all columns
  std::int64_t blockRows = 0;    ///< that are computed from a panel at once
  std::vector<Panel> panels;
  std::size_t packedBytes = 0, transposedBytes = 0, scratchBytes = 0;
};

GemmLibrary::GemmLibrary(std::size_t slots) {
  computeOnThisThreadAlone(); // products are prepared for the setting of the thread at that time
  for (std::size_t slot = 0; slot < slots; ++slot)
    streams.emplace_back(engine);
}

std::string GemmLibrary::describe() {
  const dnnl_version_t *version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

GemmPlan::GemmPlan(const Gemm &gemm, DType in, DType out, const GemmLibrary &library)
    : calls(std::make_unique<Calls>(gemm, in, out, library)) {}

GemmPlan::GemmPlan(GemmPlan &&) noexcept = default;
GemmPlan::~GemmPlan() = default;

void GemmPlan::run(const GemmLibrary &library, const void *a, const void *b, void *c,
                   EpilogueCallback done) {
  calls->run(library, a, b, c, done);
}

} // namespace fsdp::rt
