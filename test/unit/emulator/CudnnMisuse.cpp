//===- CudnnMisuse.cpp - what cuDNN says to wrong descriptors -----------------------===//
//
// Prints a line for each case: what is done, and the status. test/e2e/cudnn-double.test compares
// those of the emulated library with those of NVIDIA's, where it is installed.
//
//===----------------------------------------------------------------------===//

#include "base/Error.h"
#include "runtime/kernels/cuda/CudnnLibrary.h"

#include <cstdio>
#include <functional>

using namespace fsdp::rt::cudnn;

namespace {

class Raw {
public:
  Raw(const Library &library, Kind kind) : library(library) {
    library.check(library.call.BackendCreateDescriptor(kind, &raw), "creating a descriptor");
  }
  ~Raw() { library.call.BackendDestroyDescriptor(raw); }
  Status set(Attribute attribute, Type type, std::int64_t count, const void *values) {
    return library.call.BackendSetAttribute(raw, attribute, type, count, values);
  }
  template <class T> Status set(Attribute attribute, Type type, T value) {
    return set(attribute, type, 1, &value);
  }
  Status finalize() { return library.call.BackendFinalize(raw); }

  const Library &library;
  RawDescriptor raw = nullptr;
};

constexpr std::int64_t kExtents[4] = {2, 3, 16, 8}, kStrides[4] = {384, 128, 8, 1};

/// A tensor that only lacks what a case leaves out, or gives otherwise.
void fill(Raw &tensor, std::int64_t id, Attribute without = Attribute::PackIds,
          const std::int64_t *extents = kExtents, const std::int64_t *strides = kStrides) {
  const auto give = [&](Attribute attribute, Type type, std::int64_t count, const void *values) {
    if (attribute != without)
      tensor.set(attribute, type, count, values);
  };
  const Data data = Data::BF16;
  const std::int64_t alignment = 16;
  give(Attribute::TensorData, Type::DataType, 1, &data);
  give(Attribute::TensorExtents, Type::Int64, 4, extents);
  give(Attribute::TensorStrides, Type::Int64, 4, strides);
  give(Attribute::TensorId, Type::Int64, 1, &id);
  give(Attribute::TensorAlignment, Type::Int64, 1, &alignment);
}

using Case = std::function<Status(const Library &)>;

Case tensorWithout(Attribute attribute) {
  return [=](const Library &library) {
    Raw tensor(library, Kind::Tensor);
    fill(tensor, 1, attribute);
    return tensor.finalize();
  };
}

const std::pair<const char *, Case> kCases[] = {
    {"a whole tensor", tensorWithout(Attribute::PackIds)},
    {"a tensor without a type", tensorWithout(Attribute::TensorData)},
    {"a tensor without dimensions", tensorWithout(Attribute::TensorExtents)},
    {"a tensor without strides", tensorWithout(Attribute::TensorStrides)},
    {"a tensor without an id", tensorWithout(Attribute::TensorId)},
    {"a tensor without an alignment", tensorWithout(Attribute::TensorAlignment)},
    {"a tensor with 3 strides for 4 dimensions",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       fill(tensor, 1, Attribute::TensorStrides);
       tensor.set(Attribute::TensorStrides, Type::Int64, 3, kStrides);
       return tensor.finalize();
     }},
    {"a tensor with a dimension of 0",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       const std::int64_t extents[4] = {2, 0, 16, 8};
       fill(tensor, 1, Attribute::PackIds, extents);
       return tensor.finalize();
     }},
    {"an attribute of another descriptor",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       return tensor.set(Attribute::PointwiseAxis, Type::Int64, std::int64_t(1));
     }},
    {"an attribute of another type",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       return tensor.set(Attribute::TensorId, Type::Boolean, true);
     }},
    {"an attribute of no elements",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       return tensor.set(Attribute::TensorId, Type::Int64, 0, kExtents);
     }},
    {"an attribute of two elements instead of one",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       return tensor.set(Attribute::TensorId, Type::Int64, 2, kExtents);
     }},
    {"an attribute from nowhere",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       return tensor.set(Attribute::TensorId, Type::Int64, 1, nullptr);
     }},
    {"an attribute of a finalized tensor",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor);
       fill(tensor, 1);
       tensor.finalize();
       return tensor.set(Attribute::TensorId, Type::Int64, std::int64_t(2));
     }},
    {"an operand that is not finalized",
     [](const Library &library) {
       Raw tensor(library, Kind::Tensor), operation(library, Kind::MatmulOperation);
       fill(tensor, 1);
       return operation.set(Attribute::MatmulA, Type::Descriptor, tensor.raw);
     }},
    {"a product without a result",
     [](const Library &library) {
       Raw a(library, Kind::Tensor), b(library, Kind::Tensor), function(library, Kind::Matmul);
       const std::int64_t extents[4] = {2, 3, 8, 16}, strides[4] = {384, 128, 1, 8};
       fill(a, 1), fill(b, 2, Attribute::PackIds, extents, strides);
       a.finalize(), b.finalize();
       function.set(Attribute::MatmulPrecision, Type::DataType, Data::F32);
       function.finalize();
       Raw operation(library, Kind::MatmulOperation);
       operation.set(Attribute::MatmulA, Type::Descriptor, a.raw);
       operation.set(Attribute::MatmulB, Type::Descriptor, b.raw);
       operation.set(Attribute::MatmulFunction, Type::Descriptor, function.raw);
       return operation.finalize();
     }},
    {"a loop without a mode",
     [](const Library &library) {
       Raw function(library, Kind::Pointwise);
       function.set(Attribute::PointwisePrecision, Type::DataType, Data::F32);
       return function.finalize();
     }},
    {"a reduction without an operator",
     [](const Library &library) {
       Raw function(library, Kind::Reduction);
       function.set(Attribute::ReductionPrecision, Type::DataType, Data::F32);
       return function.finalize();
     }},
    {"a graph without operations",
     [](const Library &library) { return Raw(library, Kind::Graph).finalize(); }},
    {"heuristics without a graph",
     [](const Library &library) {
       Raw heuristics(library, Kind::Heuristics);
       heuristics.set(Attribute::HeuristicsMode, Type::HeuristicsMode, Heuristics::A);
       return heuristics.finalize();
     }},
    {"a variant pack with an id more than addresses",
     [](const Library &library) {
       Raw pack(library, Kind::VariantPack);
       const std::int64_t ids[2] = {1, 2};
       void *address = &pack, *workspace = &pack;
       pack.set(Attribute::PackIds, Type::Int64, 2, ids);
       pack.set(Attribute::PackAddresses, Type::Address, 1, &address);
       pack.set(Attribute::PackWorkspace, Type::Address, 1, &workspace);
       return pack.finalize();
     }},
    {"a variant pack without ids",
     [](const Library &library) {
       Raw pack(library, Kind::VariantPack);
       void *workspace = &pack;
       pack.set(Attribute::PackWorkspace, Type::Address, 1, &workspace);
       return pack.finalize();
     }},
    {"a descriptor that is none",
     [](const Library &library) { return library.call.BackendFinalize(nullptr); }},
};

} // namespace

int main() try {
  const Library &library = Library::open();
  for (const auto &[what, perform] : kCases)
    std::printf("%s: %s\n", what, library.call.GetErrorString(perform(library)));
  return 0;
} catch (const base::Error &error) {
  std::fprintf(stderr, "cudnn-misuse: %s\n", error.what());
  return error.status();
}
