//===- Safetensors.cpp - read and write tensors by name -------------------===//

#include "interpreter/Safetensors.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/Safetensors.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

/// `message` about the file at `path`.
static llvm::Error fail(StringRef path, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "'" + path + "': " + base::printable(message.str()));
}

/// The element types of files, by their names there.
static SmallVector<std::pair<StringRef, Type>> getTypes(MLIRContext *context) {
  Builder builder(context);
  return {{"F64", builder.getF64Type()}, {"F32", builder.getF32Type()},
          {"F16", builder.getF16Type()}, {"BF16", builder.getBF16Type()},
          {"I64", builder.getI64Type()}, {"I32", builder.getI32Type()},
          {"BOOL", builder.getI1Type()}};
}

static Type typeNamed(StringRef dtype, MLIRContext *context) {
  for (auto [name, type] : getTypes(context))
    if (name == dtype)
      return type;
  return Type();
}

static StringRef nameOf(Type wanted) {
  for (auto [name, type] : getTypes(wanted.getContext()))
    if (type == wanted)
      return name;
  return "I64";
}

static int64_t storedBytesOf(Type type) { return std::max(1u, type.getIntOrFloatBitWidth() / 8); }

static Element decode(const char *bytes, Type type) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < storedBytesOf(type); ++i)
    bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  Element element;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat value(floatType.getFloatSemantics(), APInt(floatType.getWidth(), bits));
    bool lossy = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    element.f = value.convertToDouble();
  } else {
    element.i = wrapTo(static_cast<int64_t>(bits), type);
  }
  return element;
}

/// Appends an element of `type`, little-endian.
static void encode(Element element, Type type, llvm::raw_ostream &os) {
  uint64_t bits = static_cast<uint64_t>(element.i);
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat value(element.f);
    bool lossy = false;
    value.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
    bits = value.bitcastToAPInt().getZExtValue();
  }
  for (int64_t i = 0; i < storedBytesOf(type); ++i)
    os << static_cast<char>(bits >> (8 * i));
}

/// The elements of one tensor.
static llvm::Expected<Tensor> decodeTensor(StringRef path, const base::FileTensor &stored,
                                           MLIRContext *context) {
  if (base::printable(stored.name) != stored.name)
    return fail(path,
                "has a tensor '" + stored.name + "', expected a name without control characters");
  Type type = typeNamed(stored.dtype, context);
  if (!type)
    return fail(path, "tensor '" + stored.name + "' has dtype '" + stored.dtype +
                          "', expected F64, F32, F16, BF16, I64, I32 or BOOL");
  Tensor tensor(RankedTensorType::get(stored.shape, type));
  Element *to = tensor.mutableData();
  for (int64_t i = 0; i < tensor.size(); ++i)
    to[i] = decode(stored.data + i * storedBytesOf(type), type);
  return tensor;
}

llvm::Expected<TensorFile> mlir::fsdp::interpreter::readSafetensors(StringRef path,
                                                                    MLIRContext *context) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(path, "cannot be read: " + buffer.getError().message());
  base::SafetensorsContent content;
  try {
    content = base::parseSafetensors(path.str(), (*buffer)->getBuffer());
  } catch (const base::Error &error) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), Twine(error.what()));
  }
  TensorFile tensors;
  for (const base::FileTensor &stored : content.tensors) {
    llvm::Expected<Tensor> tensor = decodeTensor(path, stored, context);
    if (!tensor)
      return tensor.takeError();
    tensors[stored.name] = *tensor;
  }
  return tensors;
}

std::string mlir::fsdp::interpreter::encodeSafetensors(const TensorFile &tensors) {
  std::vector<base::TensorDeclaration> declared;
  std::string data;
  llvm::raw_string_ostream dataStream(data);
  for (const auto &[name, tensor] : tensors) {
    Type type = tensor.getType().getElementType();
    ArrayRef<int64_t> shape = tensor.getType().getShape();
    declared.push_back({name, {shape.begin(), shape.end()}, nameOf(type).str()});
    for (int64_t i = 0; i < tensor.size(); ++i)
      encode(tensor.data()[i], type, dataStream);
  }
  return base::safetensorsHeader(declared) + data;
}
