//===- Cudnn.cpp - cuDNN's backend API, as programs open it ------------------------===//
//
// A shared object named as NVIDIA's, libcudnn.so.9, which programs under the emulator open as they
// would open that. It checks descriptors as cuDNN does (unit/cudnn-tests compares the two where
// cuDNN is installed), and performs graphs on the CPU when their stream comes to them.
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Graph.h"

#include "LoadedLibrary.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

using namespace emulator::cudnn;

namespace {

#define FSDP_EXPORTED extern "C" __attribute__((visibility("default")))

/// A call of a plan that a stream will perform.
struct Call {
  const Descriptor *plan;
  Memory memory;
  unsigned number;
};

/// "", or what is wrong with the memory of a call.
std::string checkMemory(const Descriptor &plan, const Memory &memory, void *workspace) {
  const Descriptor &graph =
      plan.part(Attribute::PlanConfig).part(Attribute::ConfigEngine).part(Attribute::EngineGraph);
  for (const auto &[id, tensor] : operandsOf(graph)) {
    const std::string name = "tensor " + std::to_string(id);
    if (tensor->isByValue())
      continue;
    const void *address = memory.addresses.at(id);
    if (reinterpret_cast<std::uintptr_t>(address) %
        static_cast<std::uintptr_t>(tensor->get<std::int64_t>(Attribute::TensorAlignment)))
      return name + " is less aligned than its descriptor says";
    if (const char *wrong = emulatorCheckDeviceRange(name.c_str(), address, bytesOf(*tensor)))
      return wrong;
  }
  if (plan.workspace)
    if (const char *wrong = emulatorCheckDeviceRange("the workspace", workspace,
                                                     static_cast<std::size_t>(plan.workspace)))
      return wrong;
  return "";
}

std::atomic<unsigned> calls{0};

} // namespace

FSDP_EXPORTED std::size_t cudnnGetVersion() { return version(); }

FSDP_EXPORTED const char *cudnnGetErrorString(Status status) {
  switch (status) {
  case kSuccess:
    return "CUDNN_STATUS_SUCCESS";
  case kBadParameter:
    return "CUDNN_STATUS_BAD_PARAM";
  case kNullPointer:
    return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  case kNotFinalized:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case kWrongType:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case kNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case kUnsupportedPattern:
    return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
  case kUnsupportedShape:
    return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
  case kFailedExecution:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "an unknown status";
}

FSDP_EXPORTED void cudnnGetLastErrorString(char *message, std::size_t room) {
  std::snprintf(message, room, "%s", lastReason().c_str());
}

FSDP_EXPORTED Status cudnnCreate(cudnnContext **handle) {
  if (!handle)
    return refuse(kNullPointer, "no handle");
  *handle = new cudnnContext;
  return kSuccess;
}
FSDP_EXPORTED Status cudnnDestroy(cudnnContext *handle) {
  delete handle;
  return kSuccess;
}
FSDP_EXPORTED Status cudnnSetStream(cudnnContext *handle, cudaStream_t stream) {
  if (!handle)
    return refuse(kNullPointer, "no handle");
  handle->stream = stream;
  return kSuccess;
}

FSDP_EXPORTED Status cudnnBackendCreateDescriptor(Kind kind, RawDescriptor *descriptor) {
  if (!descriptor)
    return refuse(kNullPointer, "no place for the descriptor");
  *descriptor = create(kind);
  return *descriptor ? kSuccess : refuse(kNotSupported, "descriptors of this kind: not emulated");
}
FSDP_EXPORTED Status cudnnBackendDestroyDescriptor(RawDescriptor raw) {
  Descriptor *descriptor = find(raw);
  if (!descriptor)
    return refuse(kNullPointer, "no descriptor");
  destroy(descriptor);
  return kSuccess;
}
FSDP_EXPORTED Status cudnnBackendFinalize(RawDescriptor raw) {
  Descriptor *descriptor = find(raw);
  return descriptor ? finalize(*descriptor) : refuse(kNullPointer, "no descriptor");
}
FSDP_EXPORTED Status cudnnBackendSetAttribute(RawDescriptor raw, Attribute attribute, Type type,
                                              std::int64_t count, const void *values) {
  Descriptor *descriptor = find(raw);
  return descriptor ? set(*descriptor, attribute, type, count, values)
                    : refuse(kNullPointer, "no descriptor");
}

FSDP_EXPORTED Status cudnnBackendGetAttribute(RawDescriptor raw, Attribute attribute, Type type,
                                              std::int64_t room, std::int64_t *count,
                                              void *values) {
  Descriptor *descriptor = find(raw);
  if (!descriptor || !count)
    return refuse(kNullPointer, "no descriptor, or no place for the number of elements");
  // Configurations and engines are read into descriptors that are not finalized.
  if (!descriptor->isFinalized)
    return refuse(kNotFinalized, "the descriptor is not finalized");
  *count = 1;
  const auto into = [&](const auto &fill) {
    Descriptor *target = room ? find(*static_cast<RawDescriptor *>(values)) : nullptr;
    if (!target)
      return room ? refuse(kNullPointer, "an element is no descriptor") : kSuccess;
    fill(*target);
    target->isFinalized = true;
    return kSuccess;
  };
  const auto number = [&](std::int64_t value) {
    if (type != Type::Int64)
      return refuse(kWrongType, "the attribute has another type");
    if (room)
      std::memcpy(values, &value, sizeof value);
    return kSuccess;
  };
  if (attribute == Attribute::PlanWorkspace || attribute == Attribute::ConfigWorkspace)
    return number(descriptor->workspace);
  if (attribute == Attribute::EngineIndex)
    return number(descriptor->get<std::int64_t>(Attribute::EngineIndex));
  if (attribute == Attribute::HeuristicsResults)
    return into([&](Descriptor &config) {
      Descriptor *engine = create(Kind::Engine); // as long as the process
      const RawDescriptor graph =
          const_cast<Descriptor *>(&descriptor->part(Attribute::HeuristicsGraph));
      const std::int64_t index = kProposedEngine;
      set(*engine, Attribute::EngineGraph, Type::Descriptor, 1, &graph);
      set(*engine, Attribute::EngineIndex, Type::Int64, 1, &index);
      finalize(*engine);
      const RawDescriptor engineRaw = engine;
      set(config, Attribute::ConfigEngine, Type::Descriptor, 1, &engineRaw);
    });
  if (attribute == Attribute::ConfigEngine)
    return into([&](Descriptor &engine) {
      engine.values = descriptor->part(Attribute::ConfigEngine).values;
    });
  return refuse(kNotSupported, "reading this attribute: not emulated");
}

FSDP_EXPORTED Status cudnnBackendExecute(cudnnContext *handle, RawDescriptor planRaw,
                                         RawDescriptor packRaw) {
  const Descriptor *plan = find(planRaw), *pack = find(packRaw);
  if (!handle || !plan || !pack)
    return refuse(kNullPointer, "no handle, no plan or no variant pack");
  if (!plan->isFinalized || !pack->isFinalized)
    return refuse(kNotFinalized, "the plan or the variant pack is not finalized");
  auto call = std::make_unique<Call>(Call{plan, {}, calls++});
  std::map<std::int64_t, void *> given;
  for (std::int64_t i = 0; i < pack->values.at(Attribute::PackIds).count; ++i)
    given[pack->get<std::int64_t>(Attribute::PackIds, static_cast<std::size_t>(i))] =
        pack->get<void *>(Attribute::PackAddresses, static_cast<std::size_t>(i));
  const Descriptor &graph =
      plan->part(Attribute::PlanConfig).part(Attribute::ConfigEngine).part(Attribute::EngineGraph);
  for (const auto &[id, tensor] : operandsOf(graph)) {
    const auto found = given.find(id);
    if (found == given.end() || !found->second)
      return refuse(kBadParameter,
                    "the variant pack has no address for tensor " + std::to_string(id));
    if (tensor->isByValue())
      call->memory.numbers[id] = *static_cast<const float *>(found->second);
    else
      call->memory.addresses[id] = found->second;
  }
  void *workspace = pack->get<void *>(Attribute::PackWorkspace);
  if (const std::string wrong = checkMemory(*plan, call->memory, workspace); !wrong.empty())
    return refuse(kBadParameter, wrong);
  if (plan->workspace)
    call->memory.addresses[-1] = workspace;
  const auto run = [](void *raw) {
    const std::unique_ptr<Call> own(static_cast<Call *>(raw));
    if (const auto scratch = own->memory.addresses.find(-1); scratch != own->memory.addresses.end())
      std::memset(scratch->second, 0xff, static_cast<std::size_t>(own->plan->workspace));
    perform(*own->plan, own->memory, own->number);
  };
  return emulatorEnqueue(handle->stream, "cudnnBackendExecute", run, call.release()) == cudaSuccess
             ? kSuccess
             : refuse(kFailedExecution, "the device has failed");
}
