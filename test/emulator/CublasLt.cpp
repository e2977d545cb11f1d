//===- CublasLt.cpp - cuBLASLt, on the CPU -----------------------------------------===//
//
// Sums of an element run over k in order, in f32, and are rounded once. With `products=split` k is
// cut into parts, each summed by itself, as many as (m, n, k) says: so does cuBLASLt, whose
// algorithms differ by sizes. Where the preference allows CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE,
// the sums of parts are rounded to the type of D. The chosen algorithm remembers the problem and
// the alignment that it was asked for; the product holds the caller to both. An epilogue works on
// sums before they are rounded. A request for several algorithms finds up to `algorithms`: each
// cuts k into one part more than the one before, and needs more memory. With `fastest=N` all but
// the N-th take a second of the time of events.
//
//===----------------------------------------------------------------------===//

#include "cublasLt.h"

#include "Capture.h"
#include "Emulator.h"
#include "Failure.h"
#include "Held.h"
#include "Memory.h"
#include "Queue.h"
#include "Recording.h"
#include "cuda_bf16.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
  void *auxiliary = nullptr;
  std::int64_t auxiliaryLd = 0;

  bool has(cublasLtEpilogue_t part) const {
    return (epilogue & part) == part && epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  }
  bool hasBias() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  bool hasGelu() const { return has(CUBLASLT_EPILOGUE_GELU); }
  bool hasGeluGradient() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool writesAuxiliary() const { return has(CUBLASLT_EPILOGUE_GELU_AUX); }
  /// The rows of A or the columns of B are added up, and `bias` gets the sum.
  bool sumsA() const { return epilogue == CUBLASLT_EPILOGUE_BGRADA; }
  bool sumsB() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool hasAuxiliary() const { return writesAuxiliary() || hasGeluGradient(); }
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t ld;
  std::int32_t order = CUBLASLT_ORDER_COL, batch = 1;
  std::int64_t batchStride = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace emulator {
extern std::atomic<std::uint64_t> productCount, algorithmCount;

namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;

thread_local std::string reason;

cublasStatus_t decline(cublasStatus_t status, const std::string &text) {
  reason = text;
  return status;
}

template <class T> bool take(T &to, const void *value, std::size_t bytes) {
  if (bytes != sizeof(T))
    return false;
  std::memcpy(&to, value, bytes);
  return true;
}

std::size_t bytesOf(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

/// Elements from the first to one past the last.
std::size_t extentOf(const Layout &x) {
  const std::uint64_t inner = x.order == CUBLASLT_ORDER_COL ? x.rows : x.columns;
  const std::uint64_t outer = x.order == CUBLASLT_ORDER_COL ? x.columns : x.rows;
  return static_cast<std::size_t>(std::uint64_t(x.batch - 1) * std::uint64_t(x.batchStride) +
                                  (outer - 1) * std::uint64_t(x.ld) + inner);
}

struct Problem {
  cublasLtMatmulDescOpaque_t desc;
  Layout a, b, c, d;
  std::uint64_t m, n, k;
};

/// "", or what is wrong with the operands of the epilogue.
std::string checkEpilogue(const Problem &p) {
  const cublasLtMatmulDescOpaque_t &desc = p.desc;
  if (desc.hasBias() && !desc.bias)
    return "the epilogue adds a bias, expected CUBLASLT_MATMUL_DESC_BIAS_POINTER";
  if (desc.sumsA() || desc.sumsB()) {
    if (!desc.bias)
      return "the epilogue adds up an operand, expected CUBLASLT_MATMUL_DESC_BIAS_POINTER";
    if (desc.sumsA() ? desc.transposeA != CUBLAS_OP_N : desc.transposeB != CUBLAS_OP_T)
      return desc.sumsA() ? "CUBLASLT_EPILOGUE_BGRADA: A is transposed"
                          : "CUBLASLT_EPILOGUE_BGRADB: B is not transposed";
    return p.d.batch == 1 ? "" : "a batch with the sum of an operand: not emulated";
  }
  if (!desc.hasAuxiliary())
    return "";
  if (!desc.auxiliary)
    return "the epilogue has an auxiliary matrix, expected "
           "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER";
  if (desc.auxiliaryLd % 8 || desc.auxiliaryLd < std::int64_t(p.m))
    return formatted(
        "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: got %lld, expected a multiple of 8 that is "
        "at least %zu",
        static_cast<long long>(desc.auxiliaryLd), size_t(p.m));
  return p.d.batch == 1 ? "" : "a batch with an auxiliary matrix: not emulated";
}

/// "", or why cuBLASLt would not take it.
std::string check(Problem &p) {
  const bool tA = p.desc.transposeA == CUBLAS_OP_T, tB = p.desc.transposeB == CUBLAS_OP_T;
  p.m = tA ? p.a.columns : p.a.rows;
  p.k = tA ? p.a.rows : p.a.columns;
  p.n = tB ? p.b.rows : p.b.columns;
  const std::uint64_t kOfB = tB ? p.b.columns : p.b.rows;
  if (p.k != kOfB || p.d.rows != p.m || p.d.columns != p.n || p.c.rows != p.m || p.c.columns != p.n)
    return formatted("op(A) is %zux%zu, op(B) %zux%zu, C %zux%zu, D %zux%zu", size_t(p.m),
                     size_t(p.k), size_t(kOfB), size_t(p.n), size_t(p.c.rows), size_t(p.c.columns),
                     size_t(p.d.rows), size_t(p.d.columns));
  int index = 0;
  for (const Layout *x : {&p.a, &p.b, &p.c, &p.d}) {
    const char name = "ABCD"[index++];
    const std::uint64_t inner = x->order == CUBLASLT_ORDER_COL ? x->rows : x->columns;
    if (x->rows == 0 || x->columns == 0 || x->rows > 0x7fffffff || x->columns > 0x7fffffff)
      return formatted("%c has an extent out of range", name);
    if (x->ld < 0 || std::uint64_t(x->ld) < inner)
      return formatted("the leading dimension of %c: got %lld, expected at least %zu", name,
                       static_cast<long long>(x->ld), size_t(inner));
    if (x->batch != p.d.batch || x->batch < 1)
      return formatted("%c has %d matrices, D %d", name, x->batch, p.d.batch);
  }
  if (p.d.batch > 1 && p.d.batchStride <= 0)
    return "the matrices of D overlap";
  const cudaDataType_t in = p.a.type, out = p.d.type;
  if (p.b.type != in || p.c.type != out || p.desc.scale != CUDA_R_32F ||
      !((in == CUDA_R_32F && out == CUDA_R_32F) ||
        (in == CUDA_R_16BF && (out == CUDA_R_16BF || out == CUDA_R_32F))))
    return formatted("types A %d, B %d, C %d, D %d, scale %d: not emulated", int(in), int(p.b.type),
                     int(p.c.type), int(out), int(p.desc.scale));
  return checkEpilogue(p);
}

std::uint64_t hashOf(const Problem &p) {
  std::uint64_t hash = std::uint64_t(p.desc.transposeA * 2 + p.desc.transposeB) +
                       std::uint64_t(p.desc.epilogue) * 4 +
                       std::uint64_t(p.desc.auxiliaryLd) * 65536;
  for (const Layout *x : {&p.a, &p.b, &p.c, &p.d})
    for (std::uint64_t v :
         {std::uint64_t(x->type), x->rows, x->columns, std::uint64_t(x->ld),
          std::uint64_t(x->order), std::uint64_t(x->batch), std::uint64_t(x->batchStride)})
      hash = (hash ^ v) * 0x9E3779B97F4A7C15u + (hash >> 29);
  return hash;
}

/// Row-major f32 copy of op(matrix).
std::vector<float> copyOf(const Layout &x, bool transposed, const void *data, int batch) {
  const std::size_t rows = transposed ? x.columns : x.rows;
  const std::size_t columns = transposed ? x.rows : x.columns;
  std::vector<float> result(rows * columns);
  const bool rowStep = (x.order == CUBLASLT_ORDER_COL) == transposed;
  const std::size_t rowStride = rowStep ? std::size_t(x.ld) : 1;
  const std::size_t columnStride = rowStep ? 1 : std::size_t(x.ld);
  const std::size_t start = std::size_t(batch) * std::size_t(x.batchStride);
  const auto *f = static_cast<const float *>(data);
  const auto *h = static_cast<const __nv_bfloat16 *>(data);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t at = start + i * rowStride + j * columnStride;
      result[i * columns + j] = x.type == CUDA_R_32F ? f[at] : float(h[at]);
    }
  return result;
}

float geluOf(float x) {
  return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}

float geluSlopeOf(float x) {
  const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t + x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x));
}

float numberAt(const void *data, cudaDataType_t type, std::size_t at) {
  return type == CUDA_R_32F ? static_cast<const float *>(data)[at]
                            : float(static_cast<const __nv_bfloat16 *>(data)[at]);
}
void setNumber(void *data, cudaDataType_t type, std::size_t at, float value) {
  if (type == CUDA_R_32F)
    static_cast<float *>(data)[at] = value;
  else
    static_cast<__nv_bfloat16 *>(data)[at] = __nv_bfloat16(value);
}

/// Into how many parts algorithm `number` cuts k.
std::size_t partsOf(const Problem &p, std::size_t number) {
  const std::uint64_t hash = (p.m * 31 + p.n * 7 + p.k) * 0x9E3779B97F4A7C15u;
  const std::size_t parts = settings().split ? 2 + (hash >> 60) % 7 : 1;
  return std::min<std::size_t>(parts + number, p.k);
}

void compute(const Problem &p, float alpha, const void *a, const void *b, float beta, const void *c,
             void *d, bool roundsParts, std::size_t number) {
  std::vector<float> row(p.n), part(p.n);
  const std::size_t parts = partsOf(p, number);
  for (int batch = 0; batch < p.d.batch; ++batch) {
    const std::vector<float> x = copyOf(p.a, p.desc.transposeA == CUBLAS_OP_T, a, batch);
    const std::vector<float> y = copyOf(p.b, p.desc.transposeB == CUBLAS_OP_T, b, batch);
    for (std::size_t i = 0; i < p.m; ++i) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (std::size_t s = 0; s < parts; ++s) {
        std::vector<float> &sums = s == 0 ? row : part;
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (std::size_t l = p.k * s / parts; l < p.k * (s + 1) / parts; ++l) {
          const float factor = x[i * p.k + l];
          const float *from = y.data() + l * p.n;
          float *to = sums.data();
          for (std::size_t j = 0; j < p.n; ++j)
            to[j] += factor * from[j];
        }
        if (parts > 1 && roundsParts && p.d.type == CUDA_R_16BF)
          for (float &sum : sums)
            sum = float(__nv_bfloat16(sum));
        for (std::size_t j = 0; s > 0 && j < p.n; ++j)
          row[j] += part[j];
      }
      const auto at = [&](const Layout &z, std::size_t j) {
        return std::size_t(batch) * std::size_t(z.batchStride) + (z.order == CUBLASLT_ORDER_COL
                                                                      ? i + j * std::size_t(z.ld)
                                                                      : i * std::size_t(z.ld) + j);
      };
      for (std::size_t j = 0; j < p.n; ++j) {
        float value = alpha * row[j];
        if (beta != 0)
          value += beta * numberAt(c, p.c.type, at(p.c, j));
        if (p.desc.hasBias())
          value += numberAt(p.desc.bias, p.d.type, i);
        const std::size_t atAuxiliary = i + j * std::size_t(p.desc.auxiliaryLd);
        if (p.desc.writesAuxiliary())
          setNumber(p.desc.auxiliary, p.d.type, atAuxiliary, value);
        if (p.desc.hasGelu())
          value = geluOf(value);
        else if (p.desc.hasGeluGradient())
          value *= geluSlopeOf(numberAt(p.desc.auxiliary, p.d.type, atAuxiliary));
        setNumber(d, p.d.type, at(p.d, j), value);
      }
    }
  }
}

/// The sums of op(A) over its columns, or of op(B) over its rows, in the type of D: in f32, of
/// parts of k as the product has them.
void addUpOperand(const Problem &p, const void *a, const void *b, std::size_t number) {
  const bool ofA = p.desc.sumsA();
  const std::vector<float> of = ofA ? copyOf(p.a, p.desc.transposeA == CUBLAS_OP_T, a, 0)
                                    : copyOf(p.b, p.desc.transposeB == CUBLAS_OP_T, b, 0);
  const std::size_t count = ofA ? p.m : p.n, parts = partsOf(p, number);
  for (std::size_t i = 0; i < count; ++i) {
    float total = 0;
    for (std::size_t s = 0; s < parts; ++s) {
      float part = 0;
      for (std::size_t l = p.k * s / parts; l < p.k * (s + 1) / parts; ++l)
        part += ofA ? of[i * p.k + l] : of[l * p.n + i];
      total = s == 0 ? part : total + part;
    }
    setNumber(p.desc.bias, p.d.type, i, total);
  }
}

/// What the addresses of an epilogue's operands are multiples of, up to 256: an algorithm may rely
/// on it.
std::uint64_t alignmentOfEpilogue(const cublasLtMatmulDescOpaque_t &desc) {
  const std::uint64_t bits =
      (desc.hasBias() || desc.sumsA() || desc.sumsB() ? reinterpret_cast<std::uintptr_t>(desc.bias)
                                                      : 0) |
      (desc.hasAuxiliary() ? reinterpret_cast<std::uintptr_t>(desc.auxiliary) : 0) | 256;
  return bits & (~bits + 1);
}

/// "", or what is wrong with the memory of the epilogue's operands; `alignment`: what the algorithm
/// relies on.
std::string checkEpilogueMemory(const Problem &p, std::uint64_t alignment) {
  const std::size_t bytes = bytesOf(p.d.type);
  std::string wrong;
  if (p.desc.hasBias())
    wrong = checkRange("the bias", p.desc.bias, std::size_t(p.m) * bytes, MemoryKind::Device);
  if (p.desc.sumsA() || p.desc.sumsB())
    wrong = checkRange("the sum of an operand", p.desc.bias,
                       std::size_t(p.desc.sumsA() ? p.m : p.n) * bytes, MemoryKind::Device);
  if (wrong.empty() && p.desc.hasAuxiliary())
    wrong = checkRange("the auxiliary matrix", p.desc.auxiliary,
                       (std::size_t(p.n - 1) * std::size_t(p.desc.auxiliaryLd) + p.m) * bytes,
                       MemoryKind::Device);
  if (wrong.empty() && alignmentOfEpilogue(p.desc) < alignment)
    wrong =
        formatted("operands of the epilogue: got multiples of %zu bytes, expected of %zu, as when "
                  "the algorithm was found",
                  std::size_t(alignmentOfEpilogue(p.desc)), std::size_t(alignment));
  return wrong;
}

/// The memory that emulated algorithm `number` needs and overwrites.
std::size_t workspaceFor(const Problem &p, std::size_t limit, int number) {
  const std::size_t wanted = (p.k >= 64 ? std::size_t(4096) : 0) + 256 * std::size_t(number);
  return wanted <= limit ? wanted : 0;
}

} // namespace
} // namespace emulator

using emulator::decline;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (emulator::settings().devices == 0)
    return decline(CUBLAS_STATUS_NOT_INITIALIZED, "there is no device");
  *handle = new cublasLtContext;
  ++emulator::productHandlesHeld;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  --emulator::productHandlesHeld;
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return 130100; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t;
  (*desc)->compute = compute, (*desc)->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, std::size_t bytes) {
  const bool known =
      attribute == CUBLASLT_MATMUL_DESC_TRANSA     ? emulator::take(desc->transposeA, value, bytes)
      : attribute == CUBLASLT_MATMUL_DESC_TRANSB   ? emulator::take(desc->transposeB, value, bytes)
      : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE ? emulator::take(desc->epilogue, value, bytes)
      : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? emulator::take(desc->bias, value, bytes)
      : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
          ? emulator::take(desc->auxiliary, value, bytes)
      : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
          ? emulator::take(desc->auxiliaryLd, value, bytes)
          : false;
  return known ? CUBLAS_STATUS_SUCCESS
               : decline(CUBLAS_STATUS_INVALID_VALUE, "an attribute or its size");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, columns, ld, CUBLASLT_ORDER_COL, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, std::size_t bytes) {
  bool known = false;
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    known = emulator::take(layout->order, value, bytes);
    break;
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    known = emulator::take(layout->batch, value, bytes);
    break;
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    known = emulator::take(layout->batchStride, value, bytes);
    break;
  default:
    break;
  }
  return known ? CUBLAS_STATUS_SUCCESS
               : decline(CUBLAS_STATUS_INVALID_VALUE, "an attribute or its size");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, std::size_t bytes) {
  bool known = false;
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    known = emulator::take(preference->workspace, value, bytes);
    break;
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    known = emulator::take(preference->reductions, value, bytes);
    break;
  default:
    known = emulator::take(
        preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
        bytes);
  }
  return known ? CUBLAS_STATUS_SUCCESS
               : decline(CUBLAS_STATUS_INVALID_VALUE, "an attribute or its size");
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *found) {
  *found = 0;
  emulator::Problem problem{*desc, *a, *b, *c, *d, 0, 0, 0};
  const std::string wrong = emulator::check(problem);
  if (!wrong.empty() || asked < 1)
    return decline(CUBLAS_STATUS_INVALID_VALUE, wrong);
  if (++emulator::algorithmCount == emulator::settings().noAlgorithm)
    return decline(CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm is known for this problem");
  for (; *found < std::min(asked, emulator::settings().algorithms); ++*found) {
    cublasLtMatmulHeuristicResult_t &result = results[*found];
    result = {};
    result.workspaceSize = emulator::workspaceFor(problem, preference->workspace, *found);
    std::uint64_t *const data = result.algo.data;
    data[0] = emulator::hashOf(problem);
    for (int i = 0; i < 4; ++i)
      data[1 + i] = preference->alignment[i];
    data[5] = result.workspaceSize;
    data[6] = (preference->reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) |
              std::uint64_t(*found) << 32;
    data[7] = emulator::alignmentOfEpilogue(*desc);
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alphaAt,
                              const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
                              cublasLtMatrixLayout_t bLayout, const void *betaAt, const void *c,
                              cublasLtMatrixLayout_t cLayout, void *d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, std::size_t workspaceBytes, cudaStream_t stream) {
  if (emulator::stuck() != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (const std::string wrong = emulator::streamOfAnotherDevice(stream); !wrong.empty())
    return decline(CUBLAS_STATUS_EXECUTION_FAILED, wrong);
  emulator::Problem problem{*desc, *aLayout, *bLayout, *cLayout, *dLayout, 0, 0, 0};
  std::string wrong = emulator::check(problem);
  if (!wrong.empty())
    return decline(CUBLAS_STATUS_INVALID_VALUE, wrong);
  if (!algo || algo->data[0] != emulator::hashOf(problem))
    return decline(CUBLAS_STATUS_INVALID_VALUE, "the algorithm was found for another problem");
  const float alpha = *static_cast<const float *>(alphaAt);
  const float beta = *static_cast<const float *>(betaAt);
  const void *data[4] = {a, b, beta != 0 ? c : d, d};
  const emulator::Layout *layouts[4] = {aLayout, bLayout, cLayout, dLayout};
  for (int i = 0; i < 4 && wrong.empty(); ++i) {
    const char name[2] = {"ABCD"[i], 0};
    wrong = emulator::checkRange(
        name, data[i], emulator::extentOf(*layouts[i]) * emulator::bytesOf(layouts[i]->type),
        emulator::MemoryKind::Device);
    if (wrong.empty() && reinterpret_cast<std::uintptr_t>(data[i]) % algo->data[1 + i])
      wrong = emulator::formatted("%s at %p: expected a multiple of %zu, as the algorithm was "
                                  "asked for",
                                  name, data[i], std::size_t(algo->data[1 + i]));
  }
  if (wrong.empty() && c == d && beta != 0 &&
      (cLayout->ld != dLayout->ld || cLayout->order != dLayout->order ||
       cLayout->batchStride != dLayout->batchStride))
    wrong = "C is D, but laid out otherwise";
  if (wrong.empty())
    wrong = emulator::checkEpilogueMemory(problem, algo->data[7]);
  const std::size_t needed = std::size_t(algo->data[5]);
  const bool roundsParts = std::uint32_t(algo->data[6]) != 0;
  const auto number = std::size_t(algo->data[6] >> 32);
  const int fastest = emulator::settings().fastest;
  if (wrong.empty() && needed > workspaceBytes)
    wrong =
        emulator::formatted("the workspace: got %zu bytes, expected %zu", workspaceBytes, needed);
  if (wrong.empty() && needed)
    wrong = emulator::checkRange("the workspace", workspace, workspaceBytes,
                                 emulator::MemoryKind::Device);
  if (wrong.empty() && needed && reinterpret_cast<std::uintptr_t>(workspace) % 256)
    wrong = "the workspace is not aligned to 256 bytes";
  if (!wrong.empty())
    return decline(CUBLAS_STATUS_INVALID_VALUE, wrong);
  ++emulator::productCount;
  if (emulator::recordsCalls()) {
    const CUstream_st &on = *emulator::streamOf(stream);
    emulator::recordCall(on.device, on.number, "a product",
                         emulator::formatted("%zu\t%zu\t%zu", std::size_t(problem.m),
                                             std::size_t(problem.n), std::size_t(problem.k)));
    return CUBLAS_STATUS_SUCCESS;
  }
  const cudaError_t status = emulator::enqueueOrCapture(
      stream, cudaGraphNodeTypeKernel, "cublasLtMatmul", [=](const emulator::PointRef &) {
        if (needed)
          std::memset(workspace, 0xff, needed);
        emulator::compute(problem, alpha, a, b, beta, c, d, roundsParts, number);
        if (problem.desc.sumsA() || problem.desc.sumsB())
          emulator::addUpOperand(problem, a, b, number);
        if (fastest >= 0 && number != std::size_t(fastest))
          emulator::passTime(1);
        return true;
      });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "an unknown status";
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS && !emulator::reason.empty())
    return emulator::reason.c_str();
  return cublasLtGetStatusName(status);
}
