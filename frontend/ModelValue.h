//===- ModelValue.h - values of a model that is being built -----*- C++ -*-===//
//
// The types of a front end that do not need MLIR: sizes, types, source locations, errors, and a
// value with the names that messages and the IR have for it.
//
//===----------------------------------------------------------------------===//

#ifndef FRONTEND_MODELVALUE_H
#define FRONTEND_MODELVALUE_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace fsdp::frontend {

class ModelBuilder;
using Shape = std::vector<int64_t>;

enum class ElementType { f32, f64, i32, i64 };

/// The source location of an operation in the model.
struct Where {
  const char *file;
  int line;

  static Where here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// An error in a model: `FILE:LINE: error: ...` of the author's source, with the names of the
/// operands, the actual and the expected.
class ModelError : public std::runtime_error {
public:
  ModelError(Where where, const std::string &message)
      : std::runtime_error(std::string(where.file) + ":" + std::to_string(where.line) +
                           ": error: " + message),
        where(where), message(message) {}
  const Where where;
  const std::string message; ///< without the line
};

/// The origin of a value, and of operations on it: a unit, and the scopes inside it.
/// Both are empty for inputs and numbers.
struct Origin {
  std::string unit; ///< `h.0`
  std::string path; ///< prefix of the names of operations, the unit's name first: `h.0.attn`
};

/// A value of the model's step: a tensor that exists once, on a single imagined device. Cheap to
/// copy.
class ModelValue {
public:
  /// No value.
  ModelValue() = default;
  bool hasValue() const { return model != nullptr; }
  /// The name of the value in messages: an input's or parameter's name, or that of its operation.
  const std::string &name() const { return label; }

private:
  friend class ModelBuilder;
  void *value = nullptr; ///< an mlir::Value of the IR that the model becomes
  ModelBuilder *model = nullptr;
  std::string label; ///< `x`, `fc1.weight`, `fc1.relu`
  Origin origin;
};

} // namespace fsdp::frontend

#endif // FRONTEND_MODELVALUE_H
