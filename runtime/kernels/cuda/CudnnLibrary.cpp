#include "runtime/kernels/cuda/CudnnLibrary.h"

#include "base/Error.h"

#include <dlfcn.h>

namespace fsdp::rt::cudnn {

using namespace base;

namespace {

const char *nameOf(Kind kind) {
  switch (kind) {
#define FSDP_CUDNN_KIND(name, nvidia, number)                                                      \
  case Kind::name:                                                                                 \
    return #nvidia;
#include "runtime/kernels/cuda/CudnnNames.def"
  }
  return "a descriptor";
}

const char *nameOf(Attribute attribute) {
  switch (attribute) {
#define FSDP_CUDNN_ATTRIBUTE(name, nvidia, number)                                                 \
  case Attribute::name:                                                                            \
    return #nvidia;
#include "runtime/kernels/cuda/CudnnNames.def"
  }
  return "an attribute";
}

constexpr const char *kAdvice =
    "install cuDNN 9.25 or later for this CUDA (pip install nvidia-cudnn-cu13, or NVIDIA's package "
    "cudnn9-cuda-13) and let LD_LIBRARY_PATH name its folder, or unset FSDP_ATTENTION";

} // namespace

std::string versionText(std::size_t version) {
  return format("%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

Library::Library() {
  void *file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    const char *why = dlerror();
    throw Error(format("FSDP_ATTENTION=cudnn got no %s (%s), expected cuDNN %s or later: %s", kFile,
                       why ? why : "dlopen gives no reason", versionText(kOldest).c_str(), kAdvice),
                kExitNoDevice);
  }
#define FSDP_CUDNN_FIND(name, Result, parameters)                                                  \
  call.name = reinterpret_cast<Result(*) parameters>(dlsym(file, "cudnn" #name));                  \
  if (!call.name)                                                                                  \
    throw Error(format("FSDP_ATTENTION=cudnn got a %s without the function 'cudnn" #name           \
                       "', expected cuDNN %s or later: %s",                                        \
                       kFile, versionText(kOldest).c_str(), kAdvice),                              \
                kExitNoDevice);
  FSDP_CUDNN_FUNCTIONS(FSDP_CUDNN_FIND)
#undef FSDP_CUDNN_FIND
  version_ = call.GetVersion();
  if (version_ < kOldest)
    throw Error(format("FSDP_ATTENTION=cudnn got cuDNN %s, expected %s or later: %s",
                       versionText(version_).c_str(), versionText(kOldest).c_str(), kAdvice),
                kExitNoDevice);
}

const Library &Library::open() {
  static const Library library; // a failure is thrown at each call
  return library;
}

std::string Library::describe(Status status) const {
  char reason[512] = {};
  call.GetLastErrorString(reason, sizeof reason - 1);
  std::string text = reason;
  while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
    text.pop_back();
  return call.GetErrorString(status) + (text.empty() ? "" : " (" + text + ")");
}

void Library::check(Status status, const std::string &doing) const {
  if (status != kSuccess)
    throw Error(
        format("cuDNN %s reports %s, %s; unset FSDP_ATTENTION to use this program's own kernels",
               versionText(version_).c_str(), describe(status).c_str(), doing.c_str()));
}

Descriptor::Descriptor(const Library &library, Kind kind) : library_(&library), kind_(kind) {
  library.check(library.call.BackendCreateDescriptor(kind, &raw_),
                format("creating %s", nameOf(kind)));
}

Descriptor::~Descriptor() {
  if (raw_)
    library_->call.BackendDestroyDescriptor(raw_);
}

void Descriptor::set(Attribute attribute, Type type, std::int64_t count, const void *values) {
  library_->check(library_->call.BackendSetAttribute(raw_, attribute, type, count, values),
                  format("setting %s", nameOf(attribute)));
}

void Descriptor::set(Attribute attribute, const std::vector<Descriptor> &values) {
  std::vector<RawDescriptor> raw;
  for (const Descriptor &value : values)
    raw.push_back(value.raw());
  set(attribute, Type::Descriptor, static_cast<std::int64_t>(raw.size()), raw.data());
}

Status Descriptor::tryFinalize() { return library_->call.BackendFinalize(raw_); }

void Descriptor::finalize() {
  library_->check(tryFinalize(), format("finalizing %s", nameOf(kind_)));
}

std::int64_t Descriptor::get(Attribute attribute, Type type, std::int64_t room,
                             void *values) const {
  std::int64_t count = 0;
  library_->check(library_->call.BackendGetAttribute(raw_, attribute, type, room, &count, values),
                  format("reading %s", nameOf(attribute)));
  return count;
}

} // namespace fsdp::rt::cudnn
