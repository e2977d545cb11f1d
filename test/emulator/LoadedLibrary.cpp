#include "LoadedLibrary.h"

#include "Failure.h"
#include "Memory.h"
#include "Queue.h"
#include "Recording.h"

cudaError_t emulatorEnqueue(cudaStream_t stream, const char *what, void (*perform)(void *),
                            void *operand) {
  using namespace emulator;
  if (stuck() != cudaSuccess)
    return stuck();
  if (const std::string wrong = streamOfAnotherDevice(stream); !wrong.empty())
    return refuse(cudaErrorInvalidResourceHandle, wrong);
  if (recordsCalls()) {
    const CUstream_st &on = *streamOf(stream);
    recordCall(on.device, on.number, what);
    return cudaSuccess;
  }
  enqueue(stream, what, [=](const PointRef &) {
    perform(operand);
    return true;
  });
  return result();
}

const char *emulatorCheckDeviceRange(const char *role, const void *address, std::size_t bytes) {
  thread_local std::string wrong;
  wrong = emulator::checkRange(role, address, bytes, emulator::MemoryKind::Device);
  return wrong.empty() ? nullptr : wrong.c_str();
}
