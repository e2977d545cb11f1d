//===- UpdateRule.h - the table of update rules -----------------*- C++ -*-===//
//
// An elementwise update rule computes, for each element of a parameter, its next value and the next
// values of its states from those and the gradient. A row of the table in UpdateRule.cpp is the
// only definition of a rule: the compiler, the command line, the C++ DSL and the interpreter read
// it.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_UPDATERULE_H
#define DIALECT_FSDP_UPDATERULE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

class UpdateBody;
struct UpdateReference;

struct UpdateRule {
  struct Constant {
    StringRef name;
    double value;  ///< used if `#fsdp.optimizer` has no value for it
    bool fraction; ///< in [0, 1); others are at least 0
    StringRef description;
  };
  struct State {
    StringRef name;
    /// The state exists only where this constant is not 0; empty where it always exists.
    StringRef with;
  };

  StringRef name;
  StringRef description; ///< for the help of the command line
  SmallVector<Constant> constants;
  SmallVector<State> states;
  /// `weight_decay` where a command line or a C++ model chooses the rule without giving it.
  double chosenDecay;
  /// Builds the expression that all targets print.
  void (*body)(UpdateBody &);
  /// The update of one element in double, written apart from `body`: the interpreter's.
  void (*reference)(UpdateReference &);

  /// All rules, in the order of the documentation.
  static ArrayRef<UpdateRule> all();
  /// Null where no rule has this name.
  static const UpdateRule *find(StringRef name);
  /// "sgd, adam or adamw": the rules that `accepts` accepts, joined by `conjunction`.
  static std::string list(StringRef conjunction,
                          function_ref<bool(const UpdateRule &)> accepts = nullptr);
  /// The rules that read constant `name`, as "adam and adamw"; empty if no rule reads it.
  static std::string readersOf(StringRef name);
  bool reads(StringRef constant) const;
};

/// A number of an expression; operators append ops of `arith` and `math` to the body. The types of
/// two operands are the same; a number of C++ takes the other operand's.
struct Number {
  OpBuilder *builder = nullptr;
  Value value;

  /// The same with a name, which appears in generated source.
  Number named(StringRef name) const;
};
Number operator+(Number a, Number b);
Number operator-(Number a, Number b);
Number operator*(Number a, Number b);
Number operator/(Number a, Number b);
Number operator-(double a, Number b);
Number operator/(double a, Number b);
Number pow(Number base, Number exponent);
Number sqrt(Number x);
/// `condition` is a comparison or `UpdateBody::decays`.
Number select(Number condition, Number yes, Number no);
Number select(Number condition, double yes, Number no);
Number select(Number condition, Number yes, double no);
Number isZero(Number x);
/// -1, 0 or 1; 0 for NaN.
Number sign(Number x);

/// The expression of a rule: a block whose arguments and results are tensors of
/// rank 0. Parameter, gradient, states and constants are of `element`, in which the update is
/// computed; values that depend on the step alone can be computed in f64.
class UpdateBody {
public:
  /// Arguments of `block`, in this order; then the states, then the constants of the rule's row.
  enum Argument { Parameter, Gradient, Lr, Scale, Count, Decays, FirstState };

  UpdateBody(OptimizerAttr optimizer, Type element);

  Number parameter, gradient; ///< the gradient is scaled
  Number lr;                  ///< rate of this step
  Number count;               ///< number of this update, from 1, f64
  Number decays;              ///< i1: whether weight decay applies to this element
  Number decay;               ///< weight_decay, or 0 where it does not apply
  SmallVector<Number, 2> states;

  Number constant(StringRef name);
  Number literal(double value);
  Number toDouble(Number x);
  Number toElement(Number x);
  /// The factor of the parameter under decoupled weight decay: 1 - lr * weight_decay, or 1.
  Number shrink();
  /// The results of the update.
  Number newParameter;
  SmallVector<Number, 2> newStates;

  Block &block() { return *body; }

private:
  const UpdateRule &rule;
  SmallVector<Number> constants;
  Type element;
  std::unique_ptr<Block> body;
  OpBuilder builder;
};

/// One element's update in double. `round` rounds stored values as the program does.
struct UpdateReference {
  double parameter, gradient; ///< the gradient is scaled
  double lr;
  double decay; ///< weight_decay, or 0 where it does not apply
  int64_t count;
  MutableArrayRef<double> states;
  function_ref<double(StringRef)> constant;
  function_ref<double(double)> round;
};

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_UPDATERULE_H
