//===- Model.h - describe a model once, in single-device terms --*- C++ -*-===//
//
//   Tensor x = model.input("x", {batch, in});
//   Parameter w = model.unit("fc1").parameter("weight", {in, out}, normal(0.02));
//   model.loss(mean(square(einsum("bi,io->bo", x, w) - y)));
//
// The headers of models (this one, Tensor.h and Operations.h) include nothing of MLIR: a model
// compiles in a fraction of a second, and needs the compiler's library only.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODEL_H
#define DSL_MODEL_H

#include "dsl/ModelConfig.h"
#include "dsl/Tensor.h"
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace mlir {
class MLIRContext;
class ModuleOp;
template <typename OpTy> class OwningOpRef;
} // namespace mlir

namespace fsdp::dsl {

/// Initial values of a parameter.
struct Init {
  enum Kind { Constant, Normal, Uniform };
  Kind kind;
  double value; ///< of all elements, the standard deviation, or the bound
};
inline Init constant(double value) { return {Init::Constant, value}; }
inline Init zeros() { return constant(0); }
inline Init ones() { return constant(1); }
/// Mean 0, standard deviation `deviation`.
inline Init normal(double deviation) { return {Init::Normal, deviation}; }
/// Between -bound and bound.
inline Init uniform(double bound) { return {Init::Uniform, bound}; }

/// Update rule and schedule of the step; docs/optimizers.md has the rules.
struct Optimizer {
  enum Schedule { Constant, Linear, Cosine, InverseSqrt, Wsd };

  std::string rule = "adamw";
  double lr = 3e-4;
  double clip = 0; ///< largest global norm of the gradients; 0 for no clipping
  /// Constants of the rule by name, such as {"beta1", 0.9}; others have the rule's defaults.
  std::map<std::string, double> constants;
  Schedule schedule = Constant;
  int64_t warmup = 0;      ///< steps
  double minLr = 0;        ///< where the schedule ends
  double decayShare = 0.1; ///< of the steps, in which the rate of Wsd falls
  /// Factors of the rate of the parameters whose names match a pattern, such as {"*.wte.*", 0.1},
  /// in which '*' matches any part of a name; of several that match, the last applies.
  std::vector<std::pair<std::string, double>> lrScales;
  std::vector<std::string> noDecay; ///< patterns of parameters without weight decay
};

/// A number as a sum over elements and the weight of these elements (how many, or the sum of
/// their weights). It is divided once, over the whole batch of all ranks.
struct Average {
  Tensor sum;    ///< f64, rank 0
  Tensor weight; ///< f64, rank 0
};

/// The values that a checkpoint keeps for backward besides its inputs and results.
enum class Keep {
  Nothing,
  Contractions, ///< the results of products and of attention
};

/// A scope for parameters: a unit (the parameters that are gathered together), and a prefix of
/// names inside it.
class Scope {
public:
  /// A parameter called `<prefix>.<name>` of the given shape. `fileShape` is its shape in weight
  /// files if that joins factors that `shape` separates.
  Parameter parameter(const std::string &name, const Shape &shape, Init init,
                      const Shape &fileShape = {}, Where where = Where::here()) const;
  /// The same unit with a longer prefix.
  Scope scope(const std::string &name) const;
  /// The same, but its parameters are not trained: they have no gradient and no optimizer state,
  /// and are initialized, loaded and exported like the others.
  Scope frozen() const;
  /// The same unit and names, these with `prefix` before them, and trained even where this scope is
  /// frozen: for adapters.
  Scope adapter(const std::string &prefix) const;

private:
  friend class Model;
  ModelBuilder *model;
  std::string prefix; ///< of parameters' names
  Origin origin;
  bool isFrozen = false;
};

/// Describes one training step, which becomes global IR.
class Model {
public:
  /// For the compiler: `context` has the dialects of `registerDialects` (frontend/ModelBuilder.h)
  /// loaded.
  explicit Model(mlir::MLIRContext &context, Where where = Where::here());
  ~Model();

  /// A batch: dimension `sampleDim` is the sample dimension.
  Tensor input(const std::string &name, const Shape &shape,
               ElementType elementType = ElementType::f32, int64_t sampleDim = 0,
               Where where = Where::here());
  /// A batch (samples, positions) of tokens, i32 below `vocab`, from one long row: sample i is the
  /// tokens from i * positions on.
  Tensor tokens(const std::string &name, const Shape &shape, int64_t vocab,
                Where where = Where::here());
  /// The successor of each of these tokens.
  Tensor targets(const std::string &name, const Shape &shape, int64_t vocab,
                 Where where = Where::here());

  /// The unit `name`, which is also the prefix of its parameters' names.
  Scope unit(const std::string &name) { return unit(name, name); }
  /// The unit called `name`, its parameters' names beginning with `prefix`, or without a prefix if
  /// that is empty. Operations on them are named after the unit.
  Scope unit(const std::string &name, const std::string &prefix);

  /// The result of `function`. Backward keeps few of its values and recomputes the rest:
  ///   x = model.checkpoint([&] { return block(x); });
  /// The function may contain operations only, not inputs, losses, metrics or other checkpoints. A
  /// tensor that it computes can be used outside only if it is returned.
  Tensor checkpoint(const std::function<Tensor()> &function, Keep keep = Keep::Nothing,
                    Where where = Where::here());
  std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()> &function,
                                 Keep keep = Keep::Nothing, Where where = Where::here());

  /// The loss that training minimizes. Once per model.
  void loss(const Average &average, Where where = Where::here());
  /// A further number to log under `name`.
  void metric(const std::string &name, const Average &average, Where where = Where::here());
  void optimizer(const Optimizer &optimizer, Where where = Where::here());
  /// A file written next to the weights in every checkpoint, for programs that load them, such
  /// as "config.json" for Hugging Face's. Once for each name.
  void checkpointFile(const std::string &name, const std::string &text,
                      Where where = Where::here());

  /// The file that describes the model next to its weights: checkpoints contain it, and weights
  /// whose file differs from the model are refused. Once per model.
  void config(const ModelConfig &config, Where where = Where::here());

  /// Parameters of an adapter of `weight`: the model computes with weight + scale * up * down, in
  /// the shapes of files: down (rank, in), up (out, rank), weight (out, in), or (in, out) where it
  /// `isTransposed`. Programs export adapters apart, and weights with them merged.
  void adapter(const Parameter &weight, const Parameter &down, const Parameter &up, double scale,
               bool isTransposed = false);
  /// The file that describes the adapters, next to their weights. Once per model with adapters.
  void adapterFile(const std::string &name, const std::string &text, Where where = Where::here());

  /// A constant of rank 0.
  Tensor scalar(double value, ElementType elementType = ElementType::f32,
                Where where = Where::here());

  /// In the function of a manual region (dsl/Manual.h): the index of the rank along `axes`, joined
  /// by `+`, an i64 of rank 0.
  Tensor axisIndex(const std::string &axes, Where where = Where::here());
  /// The ranks along `axis` in the mesh that the model is compiled for; 1 where it lacks the axis.
  int64_t axisSize(const std::string &axis) const;

private:
  friend mlir::OwningOpRef<mlir::ModuleOp> take(Model &model, Where where);
  friend void describeFor(Model &model, const std::vector<std::pair<std::string, int64_t>> &mesh);
  std::unique_ptr<ModelBuilder> builder;
};

} // namespace fsdp::dsl

#endif // DSL_MODEL_H
