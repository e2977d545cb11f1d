//===- Safetensors.h - the file format of weights and data ------*- C++ -*-===//
//
// u64 little-endian length N, N bytes of JSON
// `{"name": {"dtype": "F32", "shape": […], "data_offsets": [begin, end]}, …}`,
// then the bytes of the tensors without holes; offsets count from their start.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_SAFETENSORS_H
#define BASE_SAFETENSORS_H

#include "base/AtomicFile.h"
#include "base/MappedFile.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace base {

/// One tensor of a file, mapped; `data` need not be aligned.
struct FileTensor {
  std::string name;
  std::string dtype; ///< as in the file: "F32", "I64", …
  std::vector<std::int64_t> shape;
  const char *data;
  std::size_t bytes;

  std::size_t elements() const;
  /// Whether elements are F64, F32, BF16 or F16, so that `readFloats` applies.
  bool isFloat() const {
    return dtype == "F64" || dtype == "F32" || dtype == "BF16" || dtype == "F16";
  }
  /// Whether elements are I64 or I32, so that `readIntegers` applies.
  bool isInteger() const { return dtype == "I64" || dtype == "I32"; }

  /// Converts elements [first, first + count) to float.
  void readFloats(std::size_t first, std::size_t count, float *to) const;
  /// Converts elements [first, first + count) to `Int`; the caller has checked that the values fit.
  template <typename Int> void readIntegers(std::size_t first, std::size_t count, Int *to) const;
  /// Index of the first element that is NaN or infinite as a float; `elements()` if there is none.
  std::size_t firstNonfinite() const;
};

/// The content of a safetensors file.
struct SafetensorsContent {
  std::size_t headerSize = 0;      ///< bytes before those of the tensors
  std::vector<FileTensor> tensors; ///< in the order of their data, which lies in the file's bytes
};

/// Reads `bytes`, all of the file at `path`. Throws an Error that names the file and the tensor if
/// it is truncated, has overlaps, holes or trailing bytes, or is not such a file at all.
SafetensorsContent parseSafetensors(const std::string &path, std::string_view bytes);

/// A safetensors file, mapped and checked. Throws the errors of MappedFile and parseSafetensors.
class SafetensorsFile {
public:
  explicit SafetensorsFile(std::string path);

  const std::string &path() const { return file.path(); }
  const std::vector<FileTensor> &tensors() const { return content.tensors; }
  /// All bytes before those of the tensors.
  std::string_view header() const { return {file.data(), content.headerSize}; }
  /// The tensor called `tensor`, or nullptr.
  const FileTensor *find(std::string_view tensor) const;
  /// See MappedFile.
  void releasePages() const { file.releasePages(); }
  void readAhead(const char *from, std::size_t count) const { file.readAhead(from, count); }
  void requireWhole() const { file.requireWhole(); }

private:
  MappedFile file;
  SafetensorsContent content;
};

/// A tensor to be written.
struct TensorDeclaration {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype = "F32";

  std::size_t elements() const;
};

/// The first bytes of a file of these tensors: the length of the JSON text and the text, padded to
/// a multiple of eight bytes. The data of the tensors follows in this order.
std::string safetensorsHeader(const std::vector<TensorDeclaration> &tensors);

/// Writes F32 tensors in the order in which they are declared.
class SafetensorsWriter {
public:
  SafetensorsWriter(const OutputPath &path, const std::vector<TensorDeclaration> &tensors);

  /// Appends elements of the tensors, in order.
  void write(const float *values, std::size_t count);

  /// Completes the file. All declared elements must have been written.
  void commit();

private:
  AtomicFile file;
  std::size_t missing = 0; ///< elements still to come
};

/// `[2, 3]`: a shape as messages print it.
template <class Shape> std::string shapeText(const Shape &shape) {
  std::string text;
  for (std::int64_t extent : shape)
    text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return text.empty() ? "[]" : text + "]";
}

} // namespace base

#endif // BASE_SAFETENSORS_H
