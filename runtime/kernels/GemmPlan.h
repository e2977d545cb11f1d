//===- GemmPlan.h - a matrix product, prepared ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_GEMMPLAN_H
#define FSDP_RUNTIME_KERNELS_GEMMPLAN_H

#include "runtime/kernels/EpilogueCallback.h"
#include "runtime/kernels/PackedBf16Gemm.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"

#include <dnnl.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The setup of threads that call oneDNN, which then computes on the calling thread only: pieces of
/// a product are the parallelism here.
struct GemmLibrary {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<dnnl::stream> streams; ///< one for each slot of threads
  explicit GemmLibrary(std::size_t slots);
  /// Its name and version: "oneDNN 2.6.3".
  static std::string describe();
};

/// One call of oneDNN, with operands at other addresses each time. Threads of different slots may
/// run it at once.
class GemmCall {
public:
  GemmCall() = default;
  /// c = a * b, or c += a * b.
  GemmCall(const dnnl::matmul::primitive_desc &product, const GemmLibrary &library);
  /// A copy in another layout.
  GemmCall(const dnnl::memory::desc &from, const dnnl::memory::desc &to,
           const GemmLibrary &library);

  std::size_t scratchBytes() const { return scratchBytes_; }
  /// `operands`: a, b, c of a product; from, to of a copy.
  void run(const GemmLibrary &library, std::size_t slot, std::array<const void *, 3> operands,
           void *scratch);

private:
  struct Binding {
    std::array<dnnl::memory, 4> memories; ///< the last one is scratch
    std::array<dnnl_exec_arg_t, 4> arguments{};
  };
  void bind(const std::vector<dnnl::memory::desc> &operands, const std::vector<int> &names,
            const dnnl::memory::desc &scratch, const GemmLibrary &library);

  dnnl::primitive primitive;
  std::vector<Binding> bindings; ///< of each slot
  int operands = 0;
  std::size_t scratchBytes_ = 0;
};

/// How a product is computed: by one call for each index of its batch dimensions, by one for each
/// strip of columns, or, where it is large, by blocks of rows over a right side that is packed
/// before. Each of these is a piece for a thread. Large products of bf16 are our
/// own (PackedBf16Gemm) where the processor has instructions for them.
///
/// oneDNN reads a right side of floats that stands row by row where it lies, and then waits for
/// the processor's table of pages: packing costs a few percent and makes a product 1.5 to 2.5
/// times as fast. The choice hangs on types, shapes and strides alone, so that equal products are
/// equal bit by bit.
class GemmPlan {
public:
  GemmPlan(const Gemm &gemm, DType in, DType out, const GemmLibrary &library);

  /// Calls `done` as rows of c become complete, or when all are.
  void run(const GemmLibrary &library, const void *a, const void *b, void *c,
           EpilogueCallback done);

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

  static Operand normalized(Operand x);
  static dnnl::memory::desc describe(const Operand &x, std::int64_t batch = 1,
                                     std::int64_t batchStride = 0);
  std::optional<PackedBf16Gemm::Shape> packedShape() const;
  void prepareWhole(const GemmLibrary &library);
  bool wantsPanels() const;
  void packPanel(const GemmLibrary &library, const Operand &by, const dnnl::memory::desc &packed,
                 Panel &panel);
  void preparePanels(const GemmLibrary &library);
  void runWhole(const GemmLibrary &library, const char *a, const char *b, char *c);
  void complete(EpilogueCallback done) const;
  /// Returns whether `done` was called for the rows.
  bool runPanels(const GemmLibrary &library, const char *a, const char *b, char *c,
                 EpilogueCallback done);

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

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_GEMMPLAN_H
