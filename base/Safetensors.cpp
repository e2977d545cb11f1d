#include "base/Safetensors.h"

#include "base/Error.h"
#include "base/JsonObject.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace base {

namespace {

using Json = nlohmann::json;

/// Bytes of one element; 0 for a name that the format does not have.
std::size_t elementBytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::size_t> sizes[] = {
      {"F64", 8},  {"I64", 8}, {"U64", 8},     {"F32", 4},     {"I32", 4},
      {"U32", 4},  {"F16", 2}, {"I16", 2},     {"U16", 2},     {"I8", 1},
      {"BF16", 2}, {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
  for (const auto &[name, bytes] : sizes)
    if (name == dtype)
      return bytes;
  return 0;
}

/// The upper half of a float.
float widenBrain(std::uint16_t brain) {
  const std::uint32_t bits = std::uint32_t(brain) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// An IEEE half precision number.
float widenHalf(std::uint16_t half) {
  const bool special = (half & 0x7c00) == 0x7c00; // infinity or NaN
  std::uint32_t bits = std::uint32_t(half & 0x7fff) << 13 | (special ? 0x7f800000u : 0);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  // The exponent is biased by 15 there and 127 here; a product also normalizes subnormals.
  value *= special ? 1.0f : 0x1p112f;
  return half & 0x8000 ? -value : value;
}

/// Calls `visit` with a function from index to element, as float.
template <typename Visit> auto withFloats(const FileTensor &tensor, Visit visit) {
  const char *data = tensor.data;
  if (tensor.dtype == "F32")
    return visit([data](std::size_t i) { return load<float>(data, i); });
  if (tensor.dtype == "F64")
    return visit([data](std::size_t i) { return static_cast<float>(load<double>(data, i)); });
  if (tensor.dtype == "F16")
    return visit([data](std::size_t i) { return widenHalf(load<std::uint16_t>(data, i)); });
  return visit([data](std::size_t i) { return widenBrain(load<std::uint16_t>(data, i)); });
}

std::size_t elementsOf(const std::vector<std::int64_t> &shape) {
  std::size_t product = 1;
  for (std::int64_t extent : shape)
    product *= static_cast<std::size_t>(extent);
  return product;
}

bool isNatural(const Json &value) { return value.is_number_unsigned(); }

} // namespace

std::size_t FileTensor::elements() const { return elementsOf(shape); }

void FileTensor::readFloats(std::size_t first, std::size_t count, float *to) const {
  withFloats(*this, [&](auto element) {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = element(first + i);
  });
}

template <typename Int>
void FileTensor::readIntegers(std::size_t first, std::size_t count, Int *to) const {
  if (dtype == "I64")
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<Int>(load<std::int64_t>(data, first + i));
  else
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<Int>(load<std::int32_t>(data, first + i));
}

template void FileTensor::readIntegers(std::size_t, std::size_t, std::int32_t *) const;
template void FileTensor::readIntegers(std::size_t, std::size_t, std::int64_t *) const;

std::size_t FileTensor::firstNonfinite() const {
  const std::size_t count = elements();
  return withFloats(*this, [&](auto element) {
    // Blocks without a branch inside are scanned at the speed of memory.
    constexpr std::size_t block = 1024;
    for (std::size_t begin = 0; begin < count; begin += block) {
      const std::size_t end = std::min(count, begin + block);
      int bad = 0;
      for (std::size_t i = begin; i < end; ++i)
        bad |= !(std::fabs(element(i)) <= 3.402823466e38f);
      for (std::size_t i = begin; bad && i < end; ++i)
        if (!std::isfinite(element(i)))
          return i;
    }
    return count;
  });
}

SafetensorsFile::SafetensorsFile(std::string path)
    : file(std::move(path)), content(parseSafetensors(file.path(), {file.data(), file.size()})) {}

const FileTensor *SafetensorsFile::find(std::string_view tensor) const {
  for (const FileTensor &candidate : content.tensors)
    if (candidate.name == tensor)
      return &candidate;
  return nullptr;
}

namespace {

[[noreturn]] void refuse(const std::string &path, const std::string &why) {
  throw Error("'" + path + "' is not a complete safetensors file: " + why +
              "; write or download it again");
}

/// The tensor that `entry` describes, out of the `size` bytes at `data`.
FileTensor parseTensor(const std::string &path, const std::string &name, const Json &entry,
                       const char *data, std::size_t size) {
  const auto bad = [&](const std::string &why) { refuse(path, "tensor '" + name + "' " + why); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string())
    bad("has no 'dtype'");
  FileTensor tensor;
  tensor.name = name;
  tensor.dtype = entry["dtype"].get<std::string>();
  std::size_t bytes = elementBytes(tensor.dtype);
  if (bytes == 0)
    bad("has dtype '" + tensor.dtype + "', which the format does not have");
  if (!entry.contains("shape") || !entry["shape"].is_array())
    bad("has no 'shape'");
  for (const Json &extent : entry["shape"]) {
    if (!isNatural(extent))
      bad("has a shape that is not a list of extents");
    const auto number = extent.get<std::uint64_t>();
    if (__builtin_mul_overflow(bytes, number, &bytes) || number > std::uint64_t(INT64_MAX))
      bad("has more elements than a file can hold");
    tensor.shape.push_back(static_cast<std::int64_t>(number));
  }
  if (!entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2 || !isNatural(entry["data_offsets"][0]) ||
      !isNatural(entry["data_offsets"][1]))
    bad("has no 'data_offsets' [begin, end]");
  const auto begin = entry["data_offsets"][0].get<std::uint64_t>();
  const auto end = entry["data_offsets"][1].get<std::uint64_t>();
  if (begin > end || end - begin != bytes)
    bad("got bytes [" + std::to_string(begin) + ", " + std::to_string(end) + "), expected " +
        std::to_string(bytes) + " bytes for " + tensor.dtype + " " + shapeText(tensor.shape));
  if (end > size)
    bad("is cut off: got " + std::to_string(size) + " bytes of data, expected at least " +
        std::to_string(end));
  tensor.data = data + begin;
  tensor.bytes = bytes;
  return tensor;
}

/// Refuses tensors, in the order of their data, that do not cover the `size` bytes at `data` once.
void requireCover(const std::string &path, const std::vector<FileTensor> &tensors, const char *data,
                  std::size_t size) {
  const char *expected = data;
  for (const FileTensor &tensor : tensors) {
    if (tensor.data != expected)
      refuse(path,
             "tensor '" + tensor.name + "' begins at byte " + std::to_string(tensor.data - data) +
                 " of the data, expected " + std::to_string(expected - data) +
                 (tensor.data < expected ? ": it overlaps the one before" : ": there is a gap"));
    expected += tensor.bytes;
  }
  if (expected != data + size)
    refuse(path, "got " + std::to_string(size) + " bytes of data, expected " +
                     std::to_string(expected - data));
}

} // namespace

SafetensorsContent parseSafetensors(const std::string &path, std::string_view bytes) {
  if (bytes.size() < 8)
    refuse(path, "got " + std::to_string(bytes.size()) +
                     " bytes, expected at least 8 for the header's length");
  const auto headerBytes = load<std::uint64_t>(bytes.data(), 0);
  if (headerBytes > kMaxJsonBytes || headerBytes > bytes.size() - 8)
    refuse(path, "got a header of " + std::to_string(headerBytes) + " bytes, expected at most " +
                     std::to_string(std::min(kMaxJsonBytes, bytes.size() - 8)));
  const char *header = bytes.data() + 8, *data = header + headerBytes;
  const std::size_t dataBytes = bytes.size() - 8 - headerBytes;

  SafetensorsContent content;
  content.headerSize = 8 + headerBytes;
  Json json;
  if (const std::string fault = parseJsonObject(std::string_view(header, headerBytes), json);
      !fault.empty())
    refuse(path, "its header " + fault);
  for (const auto &[name, entry] : json.items())
    if (name != "__metadata__")
      content.tensors.push_back(parseTensor(path, name, entry, data, dataBytes));
  std::sort(content.tensors.begin(), content.tensors.end(),
            [](const FileTensor &a, const FileTensor &b) {
              return std::pair(a.data, a.bytes) < std::pair(b.data, b.bytes);
            });
  requireCover(path, content.tensors, data, dataBytes);
  return content;
}

std::string safetensorsHeader(const std::vector<TensorDeclaration> &tensors) {
  nlohmann::ordered_json json;
  json["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const TensorDeclaration &tensor : tensors) {
    const std::size_t end = offset + tensor.elements() * elementBytes(tensor.dtype);
    json[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // A name that is not UTF-8 is written with replacement characters.
  std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + header;
}

std::size_t TensorDeclaration::elements() const { return elementsOf(shape); }

SafetensorsWriter::SafetensorsWriter(const OutputPath &path,
                                     const std::vector<TensorDeclaration> &tensors)
    : file(path) {
  for (const TensorDeclaration &tensor : tensors)
    missing += tensor.elements();
  const std::string header = safetensorsHeader(tensors);
  file.write(header.data(), header.size());
}

void SafetensorsWriter::write(const float *values, std::size_t count) {
  if (count > missing)
    throw Error("more elements written than declared");
  missing -= count;
  file.write(values, count * sizeof(float));
}

void SafetensorsWriter::commit() {
  if (missing != 0)
    throw Error(std::to_string(missing) + " declared elements were never written");
  file.commit();
}

} // namespace base
