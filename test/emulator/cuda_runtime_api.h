//===- cuda_runtime_api.h - CUDA's runtime: graphs --------------------------------===//
//
// The toolkit's header of this name has all functions of the runtime. Here cuda_runtime.h has those
// that kernels' sources need too, and this one those of capture and graphs (Capture.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_CUDA_RUNTIME_API_H
#define FSDP_EMULATOR_CUDA_RUNTIME_API_H

#include "cuda_runtime.h"

// Further values of cudaError.
constexpr cudaError_t cudaErrorIllegalState = cudaError_t(401),
                      cudaErrorStreamCaptureUnsupported = cudaError_t(900),
                      cudaErrorStreamCaptureInvalidated = cudaError_t(901),
                      cudaErrorStreamCaptureMerge = cudaError_t(902),
                      cudaErrorStreamCaptureUnmatched = cudaError_t(903),
                      cudaErrorStreamCaptureUnjoined = cudaError_t(904),
                      cudaErrorStreamCaptureIsolation = cudaError_t(905),
                      cudaErrorStreamCaptureImplicit = cudaError_t(906),
                      cudaErrorCapturedEvent = cudaError_t(907),
                      cudaErrorStreamCaptureWrongThread = cudaError_t(908);

#define cudaEventRecordExternal 0x01

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
  cudaGraphNodeTypeHost = 3,
  cudaGraphNodeTypeEventRecord = 7
};

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

struct cudaPitchedPtr {
  void *ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaExtent {
  std::size_t width, height, depth;
};
struct cudaPos {
  std::size_t x, y, z;
};
struct cudaMemcpy3DParms {
  void *srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  void *dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr,
                                     unsigned flags = 0);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, std::size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, std::size_t bytes,
                                               cudaMemcpyKind kind);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

#endif // FSDP_EMULATOR_CUDA_RUNTIME_API_H
