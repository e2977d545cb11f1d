//===- cuda_runtime.h - CUDA's runtime, on the CPU -------------------------------===//
//
// The part of CUDA 13's runtime that this project uses, with its names, types and numbers.
// README.md in this folder describes the emulated functions and the checks.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_CUDA_RUNTIME_H
#define FSDP_EMULATOR_CUDA_RUNTIME_H

#include "Device.h"

#include <cstddef>
#include <type_traits>
#include <utility>

#define FSDP_CUDA_EMULATOR 1
#define CUDART_VERSION 13000
#define CUDART_CB

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
};
typedef cudaError cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
typedef cudaDataType_t cudaDataType;

#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventWaitDefault 0x00
#define cudaEventRecordDefault 0x00

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *userData);

struct CUuuid_st {
  char bytes[16];
};
typedef CUuuid_st cudaUUID_t;

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor;
  int multiProcessorCount, pciBusID, pciDeviceID, pciDomainID, asyncEngineCount;
  int unifiedAddressing, memoryBusWidth, l2CacheSize, maxThreadsPerMultiProcessor;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, concurrentKernels, ECCEnabled, integrated;
  std::size_t sharedMemPerBlockOptin;
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes;
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostRegister(void *pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void *to, std::size_t toPitch, const void *from,
                              std::size_t fromPitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2DAsync(void *to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream = nullptr);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *userData);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

namespace emulator {
/// Bytes of the device's memory, filled with 0xff: not a number as f32, f64 and bf16, -1 as an
/// integer.
cudaError_t allocate(void **pointer, std::size_t bytes);
cudaError_t allocatePinned(void **pointer, std::size_t bytes, unsigned flags);
/// A kernel's call, of which the emulator knows bytes only.
struct CallType {
  /// Calls the kernel, or, with `places`, writes the address of each argument there.
  void (*perform)(const void *call, const void **places);
  std::size_t bytes;        ///< of a call
  std::size_t count;        ///< of arguments
  const std::size_t *sizes; ///< bytes of each argument
};
cudaError_t launch(const cudaLaunchConfig_t &config, const void *kernel, const void *call,
                   const CallType &type);
cudaError_t setAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t getAttributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t occupancy(int *blocks, int blockSize, std::size_t sharedBytes);
} // namespace emulator

template <class T> cudaError_t cudaMalloc(T **pointer, std::size_t bytes) {
  return ::emulator::allocate(reinterpret_cast<void **>(pointer), bytes);
}
template <class T> cudaError_t cudaHostAlloc(T **pointer, std::size_t bytes, unsigned flags = 0) {
  return ::emulator::allocatePinned(reinterpret_cast<void **>(pointer), bytes, flags);
}
template <class T> cudaError_t cudaMallocHost(T **pointer, std::size_t bytes, unsigned flags = 0) {
  return ::emulator::allocatePinned(reinterpret_cast<void **>(pointer), bytes, flags);
}
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return ::emulator::setAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute,
                                        int value) {
  return ::emulator::setAttribute(kernel, attribute, value);
}
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel) {
  return ::emulator::getAttributes(attributes, kernel);
}
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(Parameters...)) {
  return ::emulator::getAttributes(attributes, reinterpret_cast<const void *>(kernel));
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel, int blockSize,
                                                          std::size_t sharedBytes) {
  return ::emulator::occupancy(blocks, blockSize, sharedBytes);
}
namespace emulator {
template <std::size_t, class T> struct Argument {
  T value;
};
template <class Numbers, class... T> struct KernelCall;
/// A kernel with copies of its arguments. A program instantiates this for each of its kernels, so
/// it has few functions and no class of the standard library.
template <std::size_t... I, class... T>
struct KernelCall<std::index_sequence<I...>, T...> : Argument<I, T>... {
  void (*kernel)(T...);

  /// See CallType.
  static void perform(const void *self, const void **places) {
    const KernelCall &call = *static_cast<const KernelCall *>(self);
    if (places)
      ((*places++ = &static_cast<const Argument<I, T> &>(call).value), ...);
    else
      call.kernel(static_cast<const Argument<I, T> &>(call).value...);
  }
  static constexpr std::size_t sizes[sizeof...(T) + 1] = {sizeof(T)...};
};
} // namespace emulator

/// Arguments are copied now, as CUDA does; each thread of the grid gets copies of its own.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               const Arguments &...arguments) {
  using Call = ::emulator::KernelCall<std::index_sequence_for<Parameters...>, Parameters...>;
  static_assert(std::is_trivially_copyable_v<Call> && alignof(Call) <= alignof(std::max_align_t),
                "arguments are copied as bytes");
  const Call call{{static_cast<Parameters>(arguments)}..., kernel};
  return ::emulator::launch(*config, reinterpret_cast<const void *>(kernel), &call,
                            {Call::perform, sizeof(Call), sizeof...(Parameters), Call::sizes});
}

#endif // FSDP_EMULATOR_CUDA_RUNTIME_H
