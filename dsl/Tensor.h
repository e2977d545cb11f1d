//===- Tensor.h - values and parameters of a model --------------*- C++ -*-===//

#ifndef DSL_TENSOR_H
#define DSL_TENSOR_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace fsdp::dsl {

class ModelBuilder;
class Scope;
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
                           ": error: " + message) {}
};

/// The origin of a value, and of operations on it: a unit, and the scopes inside it.
/// Both are empty for inputs and numbers.
struct Origin {
  std::string unit; ///< `h.0`
  std::string path; ///< prefix of the names of operations, the unit's name first: `h.0.attn`
};

/// A value of the model's step: a tensor that exists once, on a single imagined device. Cheap to
/// copy.
class Tensor {
public:
  Tensor() = default;

  Shape shape() const;
  int64_t size(int64_t dim) const { return shape().at(dim); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  /// The name of the value in messages: an input's or parameter's name, or that of its operation.
  const std::string &name() const { return label; }

private:
  friend class ModelBuilder;
  friend struct Located;
  void *value = nullptr; ///< of the IR that the model becomes; ModelBuilder.h knows its type
  ModelBuilder *model = nullptr;
  std::string label; ///< for messages: `x`, `fc1.weight`, `fc1.relu`
  Origin origin;
};

/// A parameter of the model. Every use of it in an operation is one read, which the
/// compiler may turn into a gather.
class Parameter {
public:
  Parameter() = default;
  const std::string &name() const { return label; }
  const Shape &shape() const { return sizes; }

  /// Requests a split in compute: an entry for each dimension, `_` for a whole one, else
  /// axes of the mesh joined by `+`, as in w.split("_,tensor"). Axes that the mesh of a compilation
  /// lacks split nothing, so one model serves all meshes. The splits of other parameters and of
  /// values follow (docs/sharding.md). Errors: ModelError for another number of entries, an axis
  /// named twice, a malformed name.
  Parameter split(const std::string &sharding, Where where = Where::here()) const;

private:
  friend class ModelBuilder;
  friend class Scope;
  friend struct Located;
  Shape sizes;
  ModelBuilder *model = nullptr;
  std::string label; ///< `fc1.weight`
  Origin origin;
};

/// An operand together with its source location: operations take it, so that even `a + b` has a
/// source line.
struct Located {
  Located(const Tensor &tensor, Where where = Where::here());
  Located(const Parameter &parameter, Where where = Where::here());

  Tensor tensor;
  Where where;
};

} // namespace fsdp::dsl

#endif // DSL_TENSOR_H
