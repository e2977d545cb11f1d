#include "runtime/kernels/cuda/CudnnAttention.h"

#include "base/Error.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/CudnnGraph.h"

#include <cuda_runtime.h>

#include <array>
#include <cfloat>
#include <cstring>
#include <map>
#include <vector>

namespace fsdp::rt {

using namespace base;
using cudnn::Operand;

namespace {

/// Everything that a kernel depends on, of shapes that cuDNN computes.
using ShapeKey = std::array<std::int64_t, 18>;

ShapeKey keyOf(const AttentionShape &s, bool isGradient) {
  std::int64_t scale = 0;
  static_assert(sizeof s.scale <= sizeof scale, "its bits are part of the key");
  std::memcpy(&scale, &s.scale, sizeof s.scale);
  ShapeKey key{isGradient, s.batch, s.heads, s.groups, s.queries, s.keys, s.width, scale, s.causal};
  std::size_t next = 9;
  for (const HeadStrides *x : {&s.q, &s.k, &s.out})
    for (std::size_t stride : {x->batch, x->head, x->row})
      key[next++] = static_cast<std::int64_t>(stride);
  return key;
}

/// `device`, if its attention is passed to cuDNN.
int requireHopper(int device, int major, int minor) {
  if (major != 9 || minor != 0)
    throw Error(
        format("FSDP_ATTENTION=cudnn got a GPU of compute capability %d.%d, expected 9.0 "
               "(H100, H200), for which cuDNN's gradient in one order was checked; unset it "
               "to use this program's own kernels",
               major, minor),
        kExitNoDevice);
  return device;
}

/// Tensors with the addresses of a call.
struct Addresses {
  std::vector<std::int64_t> ids;
  std::vector<const void *> data;

  void add(Operand operand, const void *address) {
    ids.push_back(static_cast<std::int64_t>(operand));
    data.push_back(address);
  }
};

} // namespace

struct CudnnAttention::State {
  explicit State(int device) : device(cudnn::deviceOf(library, device)) {}

  const cudnn::Library &library = cudnn::Library::open();
  cudnn::Device device;
  cudnn::Handle handle = nullptr;
  std::map<ShapeKey, cudnn::AttentionPlan> plans;

  const cudnn::AttentionPlan &planOf(const AttentionShape &shape, bool isGradient);
  cudaError_t perform(const AttentionShape &shape, bool isGradient, Addresses addresses,
                      WorkStream stream);
};

CudnnAttention::CudnnAttention(int device, int major, int minor)
    : state_(std::make_unique<State>(requireHopper(device, major, minor))) {
  state_->library.check(state_->library.call.Create(&state_->handle), "creating a handle");
}

CudnnAttention::~CudnnAttention() {
  state_->plans.clear();
  if (state_->handle)
    state_->library.call.Destroy(state_->handle);
}

std::string CudnnAttention::version() const {
  return cudnn::versionText(state_->library.version());
}

const cudnn::AttentionPlan &CudnnAttention::State::planOf(const AttentionShape &shape,
                                                          bool isGradient) {
  if (const std::string why = cudnn::whyNot(shape); !why.empty())
    throw Error("FSDP_ATTENTION=cudnn got attention that is not passed to cuDNN: " + why + " (" +
                cudnn::describe(shape) + "); unset it to use this program's own kernels");
  const ShapeKey key = keyOf(shape, isGradient);
  auto found = plans.find(key);
  if (found == plans.end())
    found = plans.emplace(key, cudnn::AttentionPlan(library, device, shape, isGradient)).first;
  return found->second;
}

std::size_t CudnnAttention::prepare(const AttentionShape &shape, bool isGradient) {
  return state_->planOf(shape, isGradient).workspace();
}

cudaError_t CudnnAttention::State::perform(const AttentionShape &shape, bool isGradient,
                                           Addresses addresses, WorkStream stream) {
  const cudnn::AttentionPlan &plan = planOf(shape, isGradient);
  std::byte *workspace = nullptr;
  if (cudaError_t status = stream.workspace->reserve(plan.workspace(), workspace))
    return status;
  const float scale = plan.scale(), one = 1, hidden = -FLT_MAX;
  addresses.add(Operand::Scale, &scale);
  if (shape.causal)
    addresses.add(Operand::Hidden, &hidden);
  if (isGradient)
    addresses.add(Operand::One, &one);
  for (const cudnn::AttentionPlan::Scratch &scratch : plan.scratch())
    addresses.add(scratch.operand, workspace + scratch.offset);

  cudnn::Descriptor pack(library, cudnn::Kind::VariantPack);
  pack.set(cudnn::Attribute::PackIds, addresses.ids);
  pack.set(cudnn::Attribute::PackAddresses, cudnn::Type::Address,
           static_cast<std::int64_t>(addresses.data.size()), addresses.data.data());
  pack.set(cudnn::Attribute::PackWorkspace, cudnn::Type::Address, 1, &workspace);
  pack.finalize();
  library.check(library.call.SetStream(handle, stream.handle), "setting the stream");
  library.check(library.call.BackendExecute(handle, plan.raw(), pack.raw()),
                "enqueuing " + cudnn::describe(shape));
  noteVariant("cuDNN");
  return cudaSuccess;
}

cudaError_t CudnnAttention::forward(const AttentionShape &shape, const bf16 *q, const bf16 *k,
                                    const bf16 *v, bf16 *out, float *logSumExp, WorkStream stream) {
  Addresses addresses;
  addresses.add(Operand::Q, q);
  addresses.add(Operand::K, k);
  addresses.add(Operand::V, v);
  addresses.add(Operand::Out, out);
  addresses.add(Operand::LogSumExp, logSumExp);
  return state_->perform(shape, /*isGradient=*/false, std::move(addresses), stream);
}

cudaError_t CudnnAttention::gradient(const AttentionShape &shape, const AttentionOperands &o,
                                     WorkStream stream) {
  Addresses addresses;
  addresses.add(Operand::Q, o.q);
  addresses.add(Operand::K, o.k);
  addresses.add(Operand::V, o.v);
  addresses.add(Operand::Out, o.out);
  addresses.add(Operand::LogSumExp, o.logSumExp);
  addresses.add(Operand::DOut, o.dOut);
  addresses.add(Operand::DQ, o.dQ);
  addresses.add(Operand::DK, o.dK);
  addresses.add(Operand::DV, o.dV);
  return state_->perform(shape, /*isGradient=*/true, std::move(addresses), stream);
}

} // namespace fsdp::rt
