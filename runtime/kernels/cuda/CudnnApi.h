//===- CudnnApi.h - cuDNN's backend API, as far as it is used ----*- C++ -*-===//
//
// The part of cudnn_graph.h that attention needs, so that programs are compiled without cuDNN's
// headers and linked without its library, which is opened where a run asks for it. Numbers and
// signatures are those of cuDNN 9.19 (docs.nvidia.com, "cudnn_graph Library"); NVIDIA keeps them
// within a major version.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_CUDNNAPI_H
#define FSDP_RUNTIME_KERNELS_CUDA_CUDNNAPI_H

#include <cstddef>
#include <cstdint>

struct CUstream_st;
struct cudnnContext;

namespace fsdp::rt::cudnn {

#define FSDP_CUDNN_ENUMERATOR(name, nvidia, number) name = number,
enum class Kind : int {
#define FSDP_CUDNN_KIND FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Attribute : int {
#define FSDP_CUDNN_ATTRIBUTE FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Type : int {
#define FSDP_CUDNN_TYPE FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Data : int {
#define FSDP_CUDNN_DATA FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Pointwise : int {
#define FSDP_CUDNN_POINTWISE FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Reduction : int {
#define FSDP_CUDNN_REDUCTION FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Knob : int {
#define FSDP_CUDNN_KNOB FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
enum class Heuristics : int {
#define FSDP_CUDNN_HEURISTICS FSDP_CUDNN_ENUMERATOR
#include "runtime/kernels/cuda/CudnnNames.def"
};
#undef FSDP_CUDNN_ENUMERATOR

/// cudnnStatus_t: 0 is success, 3000 to 3999 say that something is not supported.
using Status = int;
constexpr Status kSuccess = 0;
constexpr bool isNotSupported(Status status) { return status / 1000 == 3; }

/// cudnnHandle_t, cudnnBackendDescriptor_t.
using Handle = ::cudnnContext *;
using RawDescriptor = void *;

/// The functions, by their names without "cudnn".
#define FSDP_CUDNN_FUNCTIONS(FUNCTION)                                                             \
  FUNCTION(GetVersion, std::size_t, ())                                                            \
  FUNCTION(GetErrorString, const char *, (Status))                                                 \
  FUNCTION(GetLastErrorString, void, (char *, std::size_t))                                        \
  FUNCTION(Create, Status, (Handle *))                                                             \
  FUNCTION(Destroy, Status, (Handle))                                                              \
  FUNCTION(SetStream, Status, (Handle, ::CUstream_st *))                                           \
  FUNCTION(BackendCreateDescriptor, Status, (Kind, RawDescriptor *))                               \
  FUNCTION(BackendDestroyDescriptor, Status, (RawDescriptor))                                      \
  FUNCTION(BackendFinalize, Status, (RawDescriptor))                                               \
  FUNCTION(BackendSetAttribute, Status,                                                            \
           (RawDescriptor, Attribute, Type, std::int64_t, const void *))                           \
  FUNCTION(BackendGetAttribute, Status,                                                            \
           (RawDescriptor, Attribute, Type, std::int64_t, std::int64_t *, void *))                 \
  FUNCTION(BackendExecute, Status, (Handle, RawDescriptor, RawDescriptor))

struct Functions {
#define FSDP_CUDNN_POINTER(name, Result, parameters) Result(*name) parameters = nullptr;
  FSDP_CUDNN_FUNCTIONS(FSDP_CUDNN_POINTER)
#undef FSDP_CUDNN_POINTER
};

} // namespace fsdp::rt::cudnn

#endif // FSDP_RUNTIME_KERNELS_CUDA_CUDNNAPI_H
