//===- Safetensors.cpp - read and write tensors by name -------------------===//

#include "interpreter/Safetensors.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>
#include <set>

using namespace mlir;
using namespace mlir::fsdp::interpreter;
namespace json = llvm::json;
using Json = nlohmann::json;

/// The limits of the generated program's reader: what is longer or deeper is no header.
static constexpr uint64_t kLongestHeader = 100'000'000;
static constexpr size_t kDeepestHeader = 8;

/// `text` without what would control a terminal, or end the text.
static std::string printable(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return text;
}

/// `message` about the file at `path`.
static llvm::Error fail(StringRef path, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "'" + path + "': " + printable(message.str()));
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

/// How deep objects and arrays stand in one another; in one pass and without memory, so that no
/// parser need be trusted with a hostile text.
static size_t nestingOf(StringRef text) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == ']' || c == '}') && depth)
      --depth;
  }
  return deepest;
}

namespace {
/// Where the bytes of a tensor stand, in the data that follows the header.
struct Extent {
  int64_t begin, end;
  std::string name;

  bool operator<(const Extent &other) const {
    return std::tie(begin, end) < std::tie(other.begin, other.end);
  }
};
} // namespace

/// The member `name` of `entry` as an array; null where there is none.
static const Json *arrayIn(const Json &entry, const char *name) {
  auto found = entry.is_object() ? entry.find(name) : entry.end();
  return found != entry.end() && found->is_array() ? &*found : nullptr;
}

/// A number that `value` holds, where it is natural and fits.
static std::optional<int64_t> asNatural(const Json &value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(INT64_MAX))
    return std::nullopt;
  return value.get<int64_t>();
}

/// One tensor, described by `entry`, out of the `data` that follows the header; adds its extent.
static llvm::Expected<Tensor> readTensor(StringRef path, StringRef name, const Json &entry,
                                         StringRef data, std::vector<Extent> &extents,
                                         MLIRContext *context) {
  const Json *sizes = arrayIn(entry, "shape"), *offsets = arrayIn(entry, "data_offsets");
  if (!sizes || !offsets || offsets->size() != 2 || !entry.contains("dtype") ||
      !entry["dtype"].is_string())
    return fail(path, "tensor '" + name + "' lacks 'dtype', 'shape' or 'data_offsets'");
  std::string dtype = entry["dtype"];
  Type type = typeNamed(dtype, context);
  if (!type)
    return fail(path, "tensor '" + name + "' has dtype '" + dtype +
                          "', expected F64, F32, F16, BF16, I64, I32 or BOOL");
  SmallVector<int64_t> shape;
  int64_t bytes = bytesOf(type);
  for (const Json &extent : *sizes) {
    std::optional<int64_t> size = asNatural(extent);
    if (!size || __builtin_mul_overflow(bytes, *size, &bytes))
      return fail(path, "tensor '" + name + "' has a shape that is not a list of sizes");
    shape.push_back(*size);
  }
  std::optional<int64_t> begin = asNatural((*offsets)[0]), end = asNatural((*offsets)[1]);
  if (!begin || !end || *end < *begin || *end > static_cast<int64_t>(data.size()))
    return fail(path, "tensor '" + name + "' lies outside of the " + Twine(data.size()) +
                          " bytes of data; is the file truncated?");
  if (*end - *begin != bytes)
    return fail(path, "tensor '" + name + "' has " + Twine(*end - *begin) + " bytes, expected " +
                          Twine(bytes) + " for its shape");
  extents.push_back({*begin, *end, name.str()});
  Tensor tensor(RankedTensorType::get(shape, type));
  Element *to = tensor.mutableData();
  for (int64_t i = 0; i < tensor.size(); ++i)
    to[i] = decode(data.data() + *begin + i * bytesOf(type), type);
  return tensor;
}

/// Fails unless the tensors cover the `size` bytes of data once.
static llvm::Error checkExtents(StringRef path, std::vector<Extent> &extents, int64_t size) {
  llvm::sort(extents);
  int64_t expected = 0;
  for (const Extent &extent : extents) {
    if (extent.begin != expected)
      return fail(path, "tensor '" + extent.name + "' begins at byte " + Twine(extent.begin) +
                            " of the data, expected " + Twine(expected) +
                            (extent.begin < expected ? ": it overlaps the one before"
                                                     : ": there is a gap"));
    expected = extent.end;
  }
  if (expected != size)
    return fail(path, "has " + Twine(size) + " bytes of data, expected " + Twine(expected));
  return llvm::Error::success();
}

/// The JSON of a header; no name stands twice in it.
static llvm::Expected<Json> parseHeader(StringRef path, StringRef text) {
  if (nestingOf(text) > kDeepestHeader)
    return fail(path, "has a header nested deeper than " + Twine(kDeepestHeader) + " levels");
  std::set<std::string> names;
  std::string twice;
  auto sawName = [&](int depth, Json::parse_event_t event, Json &value) {
    if (depth == 1 && event == Json::parse_event_t::key &&
        !names.insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  Json header = Json::parse(text.begin(), text.end(), sawName, /*allow_exceptions=*/false);
  if (header.is_discarded())
    return fail(path, "has a header that is not JSON");
  if (!header.is_object())
    return fail(path, "has a header that is not a JSON object");
  if (!twice.empty())
    return fail(path, "names tensor '" + twice + "' twice");
  return header;
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
                          Twine(bytes.size() - 8) + " follow; is it a complete safetensors file?");
  if (length > kLongestHeader)
    return fail(path, "has a header of " + Twine(length) + " bytes, expected at most " +
                          Twine(kLongestHeader));
  llvm::Expected<Json> header = parseHeader(path, bytes.substr(8, length));
  if (!header)
    return header.takeError();
  StringRef data = bytes.substr(8 + length);
  std::vector<Extent> extents;
  TensorFile tensors;
  for (const auto &[name, entry] : header->items()) {
    if (name == "__metadata__")
      continue;
    if (printable(name) != name)
      return fail(path, "has a tensor '" + name + "', expected a name without control characters");
    llvm::Expected<Tensor> tensor = readTensor(path, name, entry, data, extents, context);
    if (!tensor)
      return tensor.takeError();
    tensors[name] = *tensor;
  }
  if (llvm::Error error = checkExtents(path, extents, data.size()))
    return error;
  return tensors;
}

std::string mlir::fsdp::interpreter::encodeSafetensors(const TensorFile &tensors) {
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
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  return std::string(length, sizeof(length)) + header + data;
}
