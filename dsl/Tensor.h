//===- Tensor.h - values and parameters of a model --------------*- C++ -*-===//

#ifndef DSL_TENSOR_H
#define DSL_TENSOR_H

#include "frontend/ModelValue.h"

namespace fsdp::dsl {

class Scope;
using frontend::ElementType;
using frontend::ModelBuilder;
using frontend::ModelError;
using frontend::Origin;
using frontend::Shape;
using frontend::Where;

/// A value of the model's step.
class Tensor : public frontend::ModelValue {
public:
  Tensor() = default;
  Tensor(frontend::ModelValue value) : ModelValue(std::move(value)) {}

  Shape shape() const;
  int64_t size(int64_t dim) const { return shape().at(dim); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
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
