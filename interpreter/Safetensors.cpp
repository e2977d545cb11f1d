//===- Safetensors.cpp - read and write tensors by name -------------------===//

#include "interpreter/Safetensors.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fsdp::interpreter;
namespace json = llvm::json;

/// `message` about the file at `path`.
static llvm::Error fail(StringRef path, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "'" + path + "': " + message);
}

static Type typeNamed(StringRef dtype, MLIRContext *context) {
  Builder builder(context);
  return llvm::StringSwitch<Type>(dtype)
      .Case("F64", builder.getF64Type())
      .Case("F32", builder.getF32Type())
      .Case("F16", builder.getF16Type())
      .Case("BF16", builder.getBF16Type())
      .Case("I64", builder.getI64Type())
      .Case("I32", builder.getI32Type())
      .Case("BOOL", builder.getI1Type())
      .Default(Type());
}

static StringRef nameOf(Type type) {
  if (type.isF64())
    return "F64";
  if (type.isF32())
    return "F32";
  if (type.isF16())
    return "F16";
  if (type.isBF16())
    return "BF16";
  if (type.isInteger(1))
    return "BOOL";
  return type.isInteger(32) ? "I32" : "I64";
}

static int64_t bytesOf(Type type) { return std::max(1u, type.getIntOrFloatBitWidth() / 8); }

static Element decode(const char *bytes, Type type) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < bytesOf(type); ++i)
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

static void encode(Element element, Type type, llvm::raw_ostream &os) {
  uint64_t bits = static_cast<uint64_t>(element.i);
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat value(element.f);
    bool lossy = false;
    value.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
    bits = value.bitcastToAPInt().getZExtValue();
  }
  for (int64_t i = 0; i < bytesOf(type); ++i)
    os << static_cast<char>(bits >> (8 * i));
}

/// One tensor, described by `entry`, out of the `data` that follows the header.
static llvm::Expected<Tensor> readTensor(StringRef path, StringRef name, const json::Object *entry,
                                         StringRef data, MLIRContext *context) {
  auto dtype = entry ? entry->getString("dtype") : std::nullopt;
  const json::Array *shapeArray = entry ? entry->getArray("shape") : nullptr;
  const json::Array *offsets = entry ? entry->getArray("data_offsets") : nullptr;
  if (!dtype || !shapeArray || !offsets || offsets->size() != 2)
    return fail(path, "tensor '" + name + "' lacks 'dtype', 'shape' or 'data_offsets'");
  Type type = typeNamed(*dtype, context);
  if (!type)
    return fail(path, "tensor '" + name + "' has dtype '" + *dtype +
                          "', expected F64, F32, F16, BF16, I64, I32 or BOOL");
  SmallVector<int64_t> shape;
  int64_t bytes = bytesOf(type);
  for (const json::Value &extent : *shapeArray) {
    std::optional<int64_t> size = extent.getAsInteger();
    if (!size || *size < 0 || __builtin_mul_overflow(bytes, *size, &bytes))
      return fail(path, "tensor '" + name + "' has a shape that is no list of sizes");
    shape.push_back(*size);
  }
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin || *end > static_cast<int64_t>(data.size()))
    return fail(path, "tensor '" + name + "' lies outside of the " + Twine(data.size()) +
                          " bytes of data; is the file truncated?");
  if (*end - *begin != bytes)
    return fail(path, "tensor '" + name + "' has " + Twine(*end - *begin) + " bytes, expected " +
                          Twine(bytes) + " for its shape");
  Tensor tensor(RankedTensorType::get(shape, type));
  Element *to = tensor.mutableData();
  for (int64_t i = 0; i < tensor.size(); ++i)
    to[i] = decode(data.data() + *begin + i * bytesOf(type), type);
  return tensor;
}

llvm::Expected<TensorFile> mlir::fsdp::interpreter::readSafetensors(StringRef path,
                                                                    MLIRContext *context) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(path, "cannot be read: " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  if (bytes.size() < 8)
    return fail(path, "has " + Twine(bytes.size()) +
                          " bytes, expected at least 8; is it a safetensors file?");
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8)
    return fail(path, "has a header of " + Twine(length) + " bytes, but only " +
                          Twine(bytes.size() - 8) +
                          " follow; is it a safetensors file, and whole?");
  llvm::Expected<json::Value> header = json::parse(bytes.substr(8, length));
  if (!header)
    return fail(path, "has a header that is no JSON: " + llvm::toString(header.takeError()));
  const json::Object *entries = header->getAsObject();
  if (!entries)
    return fail(path, "has a header that is no JSON object");
  TensorFile tensors;
  for (const auto &[key, value] : *entries) {
    StringRef name = key;
    if (name == "__metadata__")
      continue;
    llvm::Expected<Tensor> tensor =
        readTensor(path, name, value.getAsObject(), bytes.substr(8 + length), context);
    if (!tensor)
      return tensor.takeError();
    tensors[name.str()] = *tensor;
  }
  return tensors;
}

llvm::Error mlir::fsdp::interpreter::writeSafetensors(StringRef path, const TensorFile &tensors) {
  std::string header, data;
  llvm::raw_string_ostream headerStream(header), dataStream(data);
  json::OStream out(headerStream);
  out.object([&] {
    out.attributeObject("__metadata__", [&] { out.attribute("format", "pt"); });
    for (const auto &[name, tensor] : tensors) {
      Type type = tensor.getType().getElementType();
      int64_t begin = data.size();
      for (int64_t i = 0; i < tensor.size(); ++i)
        encode(tensor.data()[i], type, dataStream);
      out.attributeObject(name, [&, &tensor = tensor] {
        out.attribute("dtype", nameOf(type));
        out.attributeArray("shape", [&] {
          for (int64_t size : tensor.getType().getShape())
            out.value(size);
        });
        out.attributeArray("data_offsets", [&] {
          out.value(begin);
          out.value(static_cast<int64_t>(data.size()));
        });
      });
    }
  });
  header.append(llvm::offsetToAlignment(header.size(), llvm::Align(8)), ' ');
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) -> llvm::Error {
    char length[8];
    llvm::support::endian::write64le(length, header.size());
    os.write(length, 8) << header << data;
    return llvm::Error::success();
  });
}
