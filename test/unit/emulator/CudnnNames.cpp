// The numbers of CudnnNames.def are those of NVIDIA's headers, where these are installed.

#include "runtime/kernels/cuda/CudnnApi.h"

#include <cudnn_graph.h>

#define FSDP_SAME(name, nvidia, number)                                                            \
  static_assert(static_cast<int>(nvidia) == number, "a number of cuDNN's headers differs");
#define FSDP_CUDNN_KIND FSDP_SAME
#define FSDP_CUDNN_ATTRIBUTE FSDP_SAME
#define FSDP_CUDNN_TYPE FSDP_SAME
#define FSDP_CUDNN_DATA FSDP_SAME
#define FSDP_CUDNN_POINTWISE FSDP_SAME
#define FSDP_CUDNN_REDUCTION FSDP_SAME
#define FSDP_CUDNN_KNOB FSDP_SAME
#define FSDP_CUDNN_HEURISTICS FSDP_SAME
#include "runtime/kernels/cuda/CudnnNames.def"

// An alias of ours is a function of theirs but for the types of enumerations and descriptors.
#define FSDP_EXISTS(name, Result, parameters)                                                      \
  static_assert(sizeof(&cudnn##name) == sizeof(fsdp::rt::cudnn::Functions::name), "");
FSDP_CUDNN_FUNCTIONS(FSDP_EXISTS)
