#include "LoadedLibrary.h"

#include "Capture.h"
#include "Failure.h"
#include "Memory.h"
#include "Queue.h"
#include "Recording.h"

#include <memory>

cudaError_t emulatorEnqueue(cudaStream_t stream, const char *what, void (*perform)(const void *),
                            void (*destroy)(void *), void *operand) {
  using namespace emulator;
  const std::shared_ptr<void> own(operand, destroy);
  if (stuck() != cudaSuccess)
    return stuck();
  if (const std::string wrong = streamOfAnotherDevice(stream); !wrong.empty())
    return refuse(cudaErrorInvalidResourceHandle, wrong);
  if (recordsCalls()) {
    const CUstream_st &on = *streamOf(stream);
    recordCall(on.device, on.number, what);
    return cudaSuccess;
  }
  return enqueueOrCapture(stream, cudaGraphNodeTypeKernel, what, [=](const PointRef &) {
    perform(own.get());
    return true;
  });
}

const char *emulatorCheckDeviceRange(const char *role, const void *address, std::size_t bytes) {
  thread_local std::string wrong;
  wrong = emulator::checkRange(role, address, bytes, emulator::MemoryKind::Device);
  return wrong.empty() ? nullptr : wrong.c_str();
}
