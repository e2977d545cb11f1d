//===- Failure.cpp - what went wrong first ---------------------------------------===//

#include "Failure.h"

#include "Emulator.h"
#include "cuda_runtime_api.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <utility>

namespace emulator {

namespace {
std::mutex mutex;
std::atomic<cudaError_t> sticky{cudaSuccess};
// Texts are handed out as pointers and so live on.
std::deque<std::string> texts;

thread_local cudaError_t lastError = cudaSuccess;
thread_local cudaError_t explained = cudaSuccess;
thread_local std::string explanation;

const char *nameOfCaptureError(cudaError_t error) {
  static constexpr struct {
    cudaError_t error;
    const char *name;
  } kNames[] = {{cudaErrorIllegalState, "cudaErrorIllegalState"},
                {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported"},
                {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated"},
                {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge"},
                {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched"},
                {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined"},
                {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation"},
                {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit"},
                {cudaErrorCapturedEvent, "cudaErrorCapturedEvent"},
                {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread"}};
  for (const auto &[value, name] : kNames)
    if (value == error)
      return name;
  return "an unknown error";
}

const char *nameOf(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "cudaSuccess";
  case cudaErrorInvalidValue:
    return "cudaErrorInvalidValue";
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  case cudaErrorInitializationError:
    return "cudaErrorInitializationError";
  case cudaErrorInvalidConfiguration:
    return "cudaErrorInvalidConfiguration";
  case cudaErrorInvalidDevicePointer:
    return "cudaErrorInvalidDevicePointer";
  case cudaErrorInvalidMemcpyDirection:
    return "cudaErrorInvalidMemcpyDirection";
  case cudaErrorInsufficientDriver:
    return "cudaErrorInsufficientDriver";
  case cudaErrorNoDevice:
    return "cudaErrorNoDevice";
  case cudaErrorInvalidDevice:
    return "cudaErrorInvalidDevice";
  case cudaErrorNoKernelImageForDevice:
    return "cudaErrorNoKernelImageForDevice";
  case cudaErrorUnsupportedPtxVersion:
    return "cudaErrorUnsupportedPtxVersion";
  case cudaErrorInvalidResourceHandle:
    return "cudaErrorInvalidResourceHandle";
  case cudaErrorNotReady:
    return "cudaErrorNotReady";
  case cudaErrorIllegalAddress:
    return "cudaErrorIllegalAddress";
  case cudaErrorLaunchOutOfResources:
    return "cudaErrorLaunchOutOfResources";
  case cudaErrorLaunchTimeout:
    return "cudaErrorLaunchTimeout";
  case cudaErrorPeerAccessAlreadyEnabled:
    return "cudaErrorPeerAccessAlreadyEnabled";
  case cudaErrorMisalignedAddress:
    return "cudaErrorMisalignedAddress";
  case cudaErrorLaunchFailure:
    return "cudaErrorLaunchFailure";
  case cudaErrorNotPermitted:
    return "cudaErrorNotPermitted";
  case cudaErrorNotSupported:
    return "cudaErrorNotSupported";
  case cudaErrorUnknown:
    return "cudaErrorUnknown";
  }
  return nameOfCaptureError(error);
}

} // namespace

std::string formatted(const char *format, ...) {
  char text[2000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

void recordFailure(cudaError_t error, const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (sticky != cudaSuccess)
    return;
  texts.push_back(text);
  sticky = error;
  fprintf(stderr, "cuda emulator: %s\n", text.c_str());
}

cudaError_t stuck() { return sticky; }

cudaError_t refuse(cudaError_t error, const std::string &text) {
  lastError = explained = error;
  explanation = text;
  return error;
}

cudaError_t result(cudaError_t error) {
  if (cudaError_t first = sticky)
    return first;
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

void forgetFailure() {
  std::lock_guard<std::mutex> lock(mutex);
  sticky = cudaSuccess;
  lastError = explained = cudaSuccess;
}

std::string failure() {
  std::lock_guard<std::mutex> lock(mutex);
  return sticky == cudaSuccess ? "" : texts.back();
}

} // namespace emulator

cudaError_t cudaGetLastError() {
  if (cudaError_t first = emulator::stuck())
    return first;
  return std::exchange(emulator::lastError, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  if (cudaError_t first = emulator::stuck())
    return first;
  return emulator::lastError;
}

const char *cudaGetErrorName(cudaError_t error) { return emulator::nameOf(error); }

const char *cudaGetErrorString(cudaError_t error) {
  std::lock_guard<std::mutex> lock(emulator::mutex);
  if (error != cudaSuccess && error == emulator::sticky)
    return emulator::texts.back().c_str();
  if (error != cudaSuccess && error == emulator::explained)
    return emulator::explanation.c_str();
  return emulator::nameOf(error);
}
