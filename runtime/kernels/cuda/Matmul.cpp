//===- Matmul.cpp - matrix products through cuBLASLt -----------------------===//
//
// cuBLASLt uses matrices in column order. A row-major c is, read so, c^T = b^T a^T: the operands
// trade places and nothing is copied. Of the batch dimensions cuBLASLt has one; dimensions that
// lie evenly behind one another become one, the largest goes into the call, the others are
// loops.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Matmul.h"

#include "base/EnvironmentFlag.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/ProductChooser.h"
#include "runtime/kernels/cuda/ProductTimes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

namespace {

#define FSDP_TRY(call)                                                                             \
  if (const cublasStatus_t status = (call); status != CUBLAS_STATUS_SUCCESS)                       \
  return status

/// A matrix in memory: columns of `rows` elements, `ld` apart. `transposed`: it denotes its
/// transpose.
struct Operand {
  std::int64_t rows, columns, ld;
  bool transposed;
};

/// rows x columns elements with these strides. False if they are not a matrix in column or row
/// order.
bool describe(std::int64_t rows, std::int64_t columns, std::int64_t rowStride,
              std::int64_t columnStride, Operand &operand) {
  // A stride over an extent of 1 is free: one with which the rest is a matrix.
  if (rows == 1)
    rowStride = columnStride == 1 ? columns : 1;
  if (columns == 1)
    columnStride = rowStride == 1 ? rows : 1;
  if (rowStride == 1 && columnStride >= rows) {
    operand = {rows, columns, columnStride, false};
    return true;
  }
  if (columnStride == 1 && rowStride >= columns) {
    operand = {columns, rows, rowStride, true};
    return true;
  }
  return false;
}

/// One batch dimension: its size, and its stride in elements.
struct Loop {
  std::int64_t extent = 1, a = 0, b = 0, c = 0;
};

/// A product as cuBLASLt gets it: x and y are a and b, or b and a.
struct Arrangement {
  Operand x, y, c;
  bool swapped = false;
  Loop batch;    ///< inside of the call
  Loop outer[2]; ///< around it
};

bool shapeOf(const Gemm &g, Arrangement &shape) {
  if (!describe(g.m, g.n, g.c.row, g.c.column, shape.c))
    return false;
  Operand a, b;
  if (!describe(g.m, g.k, g.a.row, g.a.column, a) || !describe(g.k, g.n, g.b.row, g.b.column, b))
    return false;
  shape.swapped = shape.c.transposed;
  if (shape.swapped) { // c^T = b^T a^T; memory is the same
    a.transposed = !a.transposed;
    b.transposed = !b.transposed;
    shape.c.transposed = false;
    shape.x = b, shape.y = a;
  } else {
    shape.x = a, shape.y = b;
  }

  Loop loops[3];
  int count = 0;
  for (int d = 0; d < 3; ++d) {
    const Loop next = {g.batch[d], g.a.batch[d], g.b.batch[d], g.c.batch[d]};
    if (next.extent == 1)
      continue;
    if (next.c <= 0)
      return false;
    Loop *last = count ? &loops[count - 1] : nullptr;
    if (last && last->a == next.a * next.extent && last->b == next.b * next.extent &&
        last->c == next.c * next.extent)
      *last = {last->extent * next.extent, next.a, next.b, next.c};
    else
      loops[count++] = next;
  }
  std::sort(loops, loops + count, [](const Loop &p, const Loop &q) { return p.extent > q.extent; });
  shape.batch = loops[0];
  shape.outer[0] = loops[1];
  shape.outer[1] = loops[2];
  return true;
}

/// Largest power of two, up to 256, that divides the address and every step that is taken from it.
std::uint32_t alignmentOf(const void *data, std::size_t elementBytes, std::int64_t step0,
                          std::int64_t step1) {
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(data) |
                             static_cast<std::uint64_t>(step0) * elementBytes |
                             static_cast<std::uint64_t>(step1) * elementBytes | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

std::size_t bytesOf(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

/// The data that cuBLASLt has prepared for a product.
struct Plan {
  Arrangement shape;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t x = nullptr, y = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algo;
  std::size_t workspace = 0;
  bool isKnown = true; ///< else cuBLASLt has no algorithm for the product with its epilogue

  void use(const cublasLtMatmulHeuristicResult_t &found) {
    algo = found.algo;
    workspace = found.workspaceSize;
  }

  Plan() = default;
  Plan(Plan &&other) noexcept { *this = std::move(other); }
  Plan &operator=(Plan &&other) noexcept {
    std::swap(shape, other.shape);
    std::swap(desc, other.desc);
    std::swap(x, other.x);
    std::swap(y, other.y);
    std::swap(c, other.c);
    std::swap(algo, other.algo);
    std::swap(workspace, other.workspace);
    std::swap(isKnown, other.isKnown);
    return *this;
  }
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {x, y, c})
      if (layout)
        cublasLtMatrixLayoutDestroy(layout);
    if (desc)
      cublasLtMatmulDescDestroy(desc);
  }
};

cublasStatus_t makeLayout(cublasLtMatrixLayout_t &layout, const Operand &x, cudaDataType_t type,
                          std::int64_t batch, std::int64_t stride) {
  FSDP_TRY(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(x.rows),
                                      static_cast<std::uint64_t>(x.columns), x.ld));
  if (batch == 1)
    return CUBLAS_STATUS_SUCCESS;
  const std::int32_t count = static_cast<std::int32_t>(batch);
  FSDP_TRY(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof(count)));
  return cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &stride, sizeof(stride));
}

struct Alignments {
  std::uint32_t x, y, c, d;
};

template <class T>
cublasStatus_t set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  return cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value));
}

/// The heuristic reads alignments from the addresses, a call the addresses.
cublasStatus_t setAddresses(cublasLtMatmulDesc_t desc, const EpilogueOperands &epilogue) {
  if (epilogue.bias)
    FSDP_TRY(set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.bias));
  if (epilogue.operandSum)
    FSDP_TRY(set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.operandSum));
  if (const void *auxiliary = epilogue.auxiliary())
    FSDP_TRY(set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary));
  return CUBLAS_STATUS_SUCCESS;
}

/// Elements between the columns of an auxiliary matrix are a multiple of this.
constexpr std::int64_t kAuxiliaryStep = 8;

cublasLtEpilogue_t kindOf(const EpilogueOperands &epilogue) {
  switch (epilogue.function) {
  case ProductFunction::none:
    // The first operand of cuBLASLt's is b, as c is row-major.
    if (epilogue.operandSum)
      return epilogue.sumsRight ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
    return epilogue.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  case ProductFunction::gelu:
    if (epilogue.sum)
      return epilogue.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return epilogue.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  case ProductFunction::geluGradient:
    return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

cublasStatus_t prepareEpilogue(const EpilogueOperands &epilogue, Plan &plan) {
  const Arrangement &s = plan.shape;
  // A bias has one element for each row of a matrix in column order.
  if (!s.swapped || s.batch.extent != 1 || s.outer[0].extent != 1 || s.outer[1].extent != 1)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (epilogue.auxiliary()) {
    if (s.c.ld % kAuxiliaryStep)
      return CUBLAS_STATUS_NOT_SUPPORTED;
    FSDP_TRY(set(plan.desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.c.ld));
  }
  // An operand that is added up lies in rows, so that cuBLASLt's A is not transposed, or its B is:
  // NVIDIA's nvmath requires that too (examples of BGRADA and BGRADB).
  if (epilogue.operandSum && (epilogue.sumsRight ? s.x.transposed : !s.y.transposed))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  FSDP_TRY(set(plan.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, kindOf(epilogue)));
  return setAddresses(plan.desc, epilogue);
}

/// `candidates` gets the algorithms that cuBLASLt proposes, at most as many as it has elements, the
/// first of which the plan has.
cublasStatus_t prepare(cublasLtHandle_t handle, cudaDataType_t in, cudaDataType_t out,
                       Alignments aligned, const EpilogueOperands &epilogue, Plan &plan,
                       std::vector<cublasLtMatmulHeuristicResult_t> &candidates) {
  const Arrangement &s = plan.shape;
  const Loop &batch = s.batch;
  FSDP_TRY(cublasLtMatmulDescCreate(&plan.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const std::int32_t opX = s.x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t opY = s.y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  FSDP_TRY(
      cublasLtMatmulDescSetAttribute(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &opX, sizeof(opX)));
  FSDP_TRY(
      cublasLtMatmulDescSetAttribute(plan.desc, CUBLASLT_MATMUL_DESC_TRANSB, &opY, sizeof(opY)));
  FSDP_TRY(makeLayout(plan.x, s.x, in, batch.extent, s.swapped ? batch.b : batch.a));
  FSDP_TRY(makeLayout(plan.y, s.y, in, batch.extent, s.swapped ? batch.a : batch.b));
  FSDP_TRY(makeLayout(plan.c, s.c, out, batch.extent, batch.c));
  if (!epilogue.isNone())
    FSDP_TRY(prepareEpilogue(epilogue, plan));

  struct Preference {
    cublasLtMatmulPreference_t handle = nullptr;
    ~Preference() {
      if (handle)
        cublasLtMatmulPreferenceDestroy(handle);
    }
  } preference;
  FSDP_TRY(cublasLtMatmulPreferenceCreate(&preference.handle));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value,
                                                sizeof(value));
  };
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(Blas::kMaxWorkspace)));
  // Parts of a sum are kept in f32: the other schemes round them to the type of c.
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                  std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned.x));
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned.y));
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned.c));
  FSDP_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned.d));

  int count = 0;
  FSDP_TRY(cublasLtMatmulAlgoGetHeuristic(handle, plan.desc, plan.x, plan.y, plan.c, plan.c,
                                          preference.handle, static_cast<int>(candidates.size()),
                                          candidates.data(), &count));
  candidates.resize(static_cast<std::size_t>(count));
  if (count == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  FSDP_TRY(candidates[0].state);
  plan.use(candidates[0]);
  return CUBLAS_STATUS_SUCCESS;
}

/// A product without terms.
cudaError_t fillZero(const Gemm &g, std::size_t elementBytes, void *c, cudaStream_t stream) {
  Operand operand;
  if (!describe(g.m, g.n, g.c.row, g.c.column, operand))
    return cudaErrorInvalidValue;
  for (std::int64_t b0 = 0; b0 < g.batch[0]; ++b0)
    for (std::int64_t b1 = 0; b1 < g.batch[1]; ++b1)
      for (std::int64_t b2 = 0; b2 < g.batch[2]; ++b2) {
        const std::int64_t at = b0 * g.c.batch[0] + b1 * g.c.batch[1] + b2 * g.c.batch[2];
        const auto bytes = [&](std::int64_t n) {
          return static_cast<std::size_t>(n) * elementBytes;
        };
        if (const cudaError_t status = cudaMemset2DAsync(
                static_cast<char *>(c) + bytes(at), bytes(operand.ld), 0, bytes(operand.rows),
                static_cast<std::size_t>(operand.columns), stream);
            status != cudaSuccess)
          return status;
      }
  return cudaSuccess;
}

/// A product with the addresses of its operands.
struct Product {
  const Gemm &g;
  cudaDataType_t in, out;
  const void *a, *b, *c;
  const EpilogueOperands &epilogue;
};

/// Everything that a plan depends on.
using Key = std::array<std::int64_t, 32>;

Key keyOf(const Product &p, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const Gemm &g = p.g;
  const EpilogueOperands &e = p.epilogue;
  Key key{g.m,  g.n,   g.k, g.batch[0], g.batch[1], g.batch[2],
          p.in, p.out, a,   b,          c,          static_cast<std::int64_t>(e.function)};
  std::size_t next = 12;
  for (const GemmStrides *x : {&g.a, &g.b, &g.c})
    for (std::int64_t stride : {x->row, x->column, x->batch[0], x->batch[1], x->batch[2]})
      key[next++] = stride;
  for (const void *operand :
       {e.bias, e.residual, e.auxiliary(), static_cast<const void *>(e.operandSum)})
    key[next++] = operand ? alignmentOf(operand, bytesOf(p.out), 0, 0) : 0;
  key[next] = e.sumsRight;
  return key;
}

} // namespace

struct Blas::State {
  cublasLtHandle_t handle = nullptr;
  ProductChooser *chooser = nullptr;
  std::map<Key, Plan> plans;
  bool usesEpilogues = true;

  cublasStatus_t find(const Product &product, const Plan *&plan);
  void tune(const Product &product, const Key &key, Plan &plan,
            const std::vector<cublasLtMatmulHeuristicResult_t> &candidates);
};

Blas::Blas(ProductChooser *chooser) : state(std::make_unique<State>()) {
  state->chooser = chooser;
  state->usesEpilogues = base::environmentFlag("FSDP_EPILOGUES").value_or(true);
}

Blas::~Blas() {
  state->plans.clear();
  if (state->handle)
    cublasLtDestroy(state->handle);
}

std::size_t Blas::plans() const { return state->plans.size(); }

/// Everything that the choice among algorithms depends on.
static std::string describe(const Gemm &g, const Key &key) {
  const auto name = [](std::int64_t type) { return type == CUDA_R_32F ? "f32" : "bf16"; };
  std::string text = std::to_string(g.m) + " x " + std::to_string(g.n) + " x " +
                     std::to_string(g.k) + ", " + name(key[6]) + " to " + name(key[7]) + ", plan";
  for (std::int64_t number : key)
    text += " " + std::to_string(number);
  return text;
}

/// Replaces the algorithm of a plan by the one that is chosen.
void Blas::State::tune(const Product &p, const Key &key, Plan &plan,
                       const std::vector<cublasLtMatmulHeuristicResult_t> &candidates) {
  const Arrangement &s = plan.shape;
  const auto measure = [&] {
    TimedProduct timed;
    timed.handle = handle;
    timed.desc = plan.desc;
    timed.x = plan.x, timed.y = plan.y, timed.c = plan.c;
    timed.xData = s.swapped ? p.b : p.a;
    timed.yData = s.swapped ? p.a : p.b;
    // Elements from the first to the last one of a call.
    const std::int64_t elements = (s.batch.extent - 1) * s.batch.c + s.c.ld * s.c.columns;
    timed.resultBytes = static_cast<std::size_t>(elements) * bytesOf(p.out);
    timed.beta = p.epilogue.residual ? 1 : p.g.beta;
    timed.hasAuxiliary = p.epilogue.auxiliary() != nullptr;
    if (p.epilogue.operandSum)
      timed.sumBytes =
          static_cast<std::size_t>(p.epilogue.sumsRight ? p.g.n : p.g.m) * bytesOf(p.out);
    return timesOf(timed, candidates);
  };
  plan.use(candidates[static_cast<std::size_t>(
      chooser->choose(describe(p.g, key), static_cast<int>(candidates.size()), measure))]);
}

/// The plan of a product that has elements and terms.
cublasStatus_t Blas::State::find(const Product &p, const Plan *&result) {
  if (!handle)
    FSDP_TRY(cublasLtCreate(&handle));
  Arrangement shape;
  if (!shapeOf(p.g, shape))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto alignment = [&](const void *data, cudaDataType_t type, std::int64_t Loop::*stride) {
    const auto step = [&](const Loop &loop) { return loop.extent > 1 ? loop.*stride : 0; };
    return alignmentOf(data, bytesOf(type), step(shape.outer[0]), step(shape.outer[1]));
  };
  const std::uint32_t alignA = alignment(p.a, p.in, &Loop::a),
                      alignB = alignment(p.b, p.in, &Loop::b),
                      alignC = alignment(p.c, p.out, &Loop::c);
  const Key key = keyOf(p, alignA, alignB, alignC);
  auto found = plans.find(key);
  if (found == plans.end()) {
    Plan plan;
    plan.shape = shape;
    const void *residual = p.epilogue.residual;
    Alignments aligned = {alignA, alignB,
                          residual ? alignmentOf(residual, bytesOf(p.out), 0, 0) : alignC, alignC};
    if (shape.swapped)
      std::swap(aligned.x, aligned.y);
    std::vector<cublasLtMatmulHeuristicResult_t> candidates(chooser ? ProductChooser::kMost : 1);
    const cublasStatus_t prepared =
        prepare(handle, p.in, p.out, aligned, p.epilogue, plan, candidates);
    // That there is no algorithm is known from then on: the loops run behind the product.
    plan.isKnown = p.epilogue.isNone() || (prepared != CUBLAS_STATUS_NOT_SUPPORTED &&
                                           prepared != CUBLAS_STATUS_INVALID_VALUE);
    if (plan.isKnown)
      FSDP_TRY(prepared);
    if (plan.isKnown && chooser && candidates.size() > 1)
      tune(p, key, plan, candidates);
    found = plans.emplace(key, std::move(plan)).first;
  }
  result = &found->second;
  return result->isKnown ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static bool isEmpty(const Gemm &g) {
  return g.m == 0 || g.n == 0 || g.batch[0] * g.batch[1] * g.batch[2] == 0;
}

bool Blas::takes(const Gemm &g, cudaDataType_t in, cudaDataType_t out, const void *a, const void *b,
                 const void *c, const EpilogueOperands &epilogue) {
  if (!state->usesEpilogues || isEmpty(g) || g.k == 0)
    return false;
  const Plan *plan = nullptr;
  // Other errors are those of the product, which reports them.
  return state->find({g, in, out, a, b, c, epilogue}, plan) != CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t Blas::multiply(const Gemm &g, cudaDataType_t in, cudaDataType_t out, const void *a,
                              const void *b, void *c, WorkStream stream,
                              const EpilogueOperands &epilogue) {
  if (isEmpty(g))
    return CUBLAS_STATUS_SUCCESS;
  const std::size_t inBytes = bytesOf(in), outBytes = bytesOf(out);
  if (g.k == 0) {
    if (!epilogue.isNone())
      return CUBLAS_STATUS_NOT_SUPPORTED;
    if (g.beta != 0)
      return CUBLAS_STATUS_SUCCESS;
    return fillZero(g, outBytes, c, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                           : CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Plan *found = nullptr;
  FSDP_TRY(state->find({g, in, out, a, b, c, epilogue}, found));
  const Plan &plan = *found;
  const Arrangement &shape = plan.shape;
  const Loop *outer = shape.outer;
  void *workspace = nullptr;
  if (plan.workspace) {
    if (!stream.workspace)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (stream.workspace->reserve(plan.workspace, workspace) != cudaSuccess)
      return CUBLAS_STATUS_ALLOC_FAILED;
  }
  FSDP_TRY(setAddresses(plan.desc, epilogue));

  const float alpha = 1, beta = epilogue.residual ? 1 : g.beta;
  for (std::int64_t i = 0; i < outer[0].extent; ++i)
    for (std::int64_t j = 0; j < outer[1].extent; ++j) {
      const auto at = [&](const void *data, std::size_t bytes, std::int64_t Loop::*stride) {
        return static_cast<const char *>(data) +
               (i * outer[0].*stride + j * outer[1].*stride) * static_cast<std::int64_t>(bytes);
      };
      const void *x = at(a, inBytes, &Loop::a), *y = at(b, inBytes, &Loop::b);
      if (shape.swapped)
        std::swap(x, y);
      void *to = const_cast<char *>(at(c, outBytes, &Loop::c));
      const void *from = epilogue.residual ? epilogue.residual : to;
      FSDP_TRY(cublasLtMatmul(state->handle, plan.desc, &alpha, x, plan.x, y, plan.y, &beta, from,
                              plan.c, to, plan.c, &plan.algo, workspace, plan.workspace, stream));
    }
  return CUBLAS_STATUS_SUCCESS;
}

#undef FSDP_TRY

} // namespace fsdp::rt
