//===- TestRules.cu - update rules written by hand ------------------------===//

#include "test/unit/cuda/TestRules.h"

#include "runtime/kernels/cuda/Update.h"

namespace fsdp::rt {

namespace {

struct Descend {
  UpdateStep step;

  __device__ void prepare() {}
  __device__ void apply(int i, bool decays, const float *parameter, const float *gradient,
                        float *newParameter) const {
    const float decay = decays ? kTestDecay : 0.0f;
    newParameter[i] = parameter[i] - step.lr * (gradient[i] * step.scale + decay * parameter[i]);
  }
};

struct Average {
  UpdateStep step;
  float part;

  __device__ void prepare() { part = static_cast<float>(1 / step.count); }
  __device__ void apply(int i, bool decays, const float *parameter, const float *gradient,
                        const float *first, const float *second, float *newParameter,
                        float *newFirst, float *newSecond) const {
    const float mean = (first[i] + gradient[i] * step.scale) * part;
    const float product = mean * second[i];
    const float decay = decays ? kTestDecay : 0.0f;
    newParameter[i] = parameter[i] - (step.lr * product + decay * parameter[i]);
    newFirst[i] = mean;
    newSecond[i] = product;
  }
};

} // namespace

cudaError_t descend(const ShardUpdates<1> &updates, cudaStream_t stream) {
  return device::update<Descend>(updates, stream);
}

cudaError_t average(const ShardUpdates<3> &updates, cudaStream_t stream) {
  return device::update<Average>(updates, stream);
}

} // namespace fsdp::rt
