//===- Evaluator.cpp - compile and run pure ops ---------------------------===//

#include "interpreter/Evaluator.h"
#include "interpreter/Rounding.h"

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Draws.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

/// Straight-line pure code with its values numbered: arguments first.
struct PureBlock {
  struct Step {
    Kernel kernel;
    SmallVector<unsigned, 4> operands;
    unsigned firstResult, numResults;
  };
  std::vector<Step> steps;
  SmallVector<unsigned> wanted;
  unsigned numArguments = 0, numValues = 0;

  /// `numericsOf` returns the numerics of each op.
  template <typename Fn>
  static FailureOr<PureBlock> compile(Block &block, ValueRange wanted, Fn numericsOf) {
    PureBlock result;
    DenseMap<Value, unsigned> numbers;
    for (Value argument : block.getArguments())
      numbers[argument] = result.numValues++;
    result.numArguments = result.numValues;
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        break;
      FailureOr<Kernel> kernel = interpreter::compile(&op, numericsOf(&op));
      if (failed(kernel))
        return failure();
      Step step{*kernel, {}, result.numValues, op.getNumResults()};
      for (Value operand : op.getOperands()) {
        auto it = numbers.find(operand);
        if (it == numbers.end())
          return op.emitError("cannot be interpreted: an operand is defined outside of its block");
        step.operands.push_back(it->second);
      }
      for (Value value : op.getResults())
        numbers[value] = result.numValues++;
      result.steps.push_back(std::move(step));
    }
    for (Value value : wanted)
      result.wanted.push_back(numbers.lookup(value));
    return result;
  }

  void run(ArrayRef<Tensor> arguments, MutableArrayRef<Tensor> results) const {
    std::vector<Tensor> values(numValues);
    llvm::copy(arguments, values.begin());
    SmallVector<Tensor, 4> operands;
    for (const Step &step : steps) {
      operands.clear();
      for (unsigned operand : step.operands)
        operands.push_back(values[operand]);
      step.kernel(operands, MutableArrayRef(values).slice(step.firstResult, step.numResults));
    }
    for (auto [result, number] : llvm::zip_equal(results, wanted))
      result = values[number];
  }
};

} // namespace

/// The pure ops of `fsdp` that are the same on every rank.
static Kernel compileDistribution(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case<ConstraintOp, ReshardOp>([](auto) -> Kernel {
        return [](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) { out[0] = in[0]; };
      })
      .Case([](ViewOp view) -> Kernel {
        auto type = cast<RankedTensorType>(view.getType());
        int64_t offset = view.getOffset();
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = Tensor(type);
          const Element *begin = in[0].data() + offset;
          std::copy(begin, begin + out[0].size(), out[0].mutableData());
        };
      })
      .Case([](FlattenOp flatten) -> Kernel {
        auto type = cast<RankedTensorType>(flatten.getType());
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = Tensor(type);
          Element *next = out[0].mutableData();
          for (const Tensor &input : in)
            next = std::copy(input.data(), input.data() + input.size(), next);
        };
      })
      .Case([](SquareSumOp square) -> Kernel {
        auto type = cast<RankedTensorType>(square.getType());
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          double total = 0;
          for (const Tensor &shard : in) {
            double sum = 0;
            for (int64_t i = 0; i < shard.size(); ++i)
              sum += shard.getFloat(i) * shard.getFloat(i);
            total += sum;
          }
          out[0] = Tensor::splat(type, total);
        };
      })
      .Case([=](ClipScaleOp scale) -> Kernel {
        auto type = cast<RankedTensorType>(scale.getType());
        // Numbers of the program, f32 in any arithmetic.
        double clip = static_cast<float>(scale.getOptimizer().getClip()), padding = 1e-6f;
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          auto round = [&](double value) {
            return roundTo(value, type.getElementType(), numerics);
          };
          double ratio = round(clip / round(in[0].getFloat(0) + padding));
          out[0] = Tensor::splat(type, ratio >= 1 ? 1 : ratio);
        };
      })
      .Case([](AcceptableOp acceptable) -> Kernel {
        auto type = cast<RankedTensorType>(acceptable.getType());
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = Tensor::splat(type, std::isfinite(in[0].getFloat(0)) &&
                                           std::isfinite(in[1].getFloat(0)));
        };
      })
      .Case([=](DropoutOp dropout) -> Kernel {
        return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          Draws draws(/*seed=*/0, DropoutOp(dropout).getName(), /*step=*/1);
          out[0] = drop(dropout, numerics, draws, in[0], /*microbatch=*/0,
                        [](ArrayRef<StringAttr>) { return 0; });
        };
      })
      .Default([](Operation *) { return Kernel(); });
}

Numerics interpreter::detail::numericsInside(Operation *op, Numerics numerics) {
  return numerics == Numerics::typed && !isa<nn::EinsumOp>(op) ? Numerics::kernel : numerics;
}

void interpreter::detail::roundStored(MutableArrayRef<Tensor> results, Numerics numerics) {
  for (Tensor &result : results) {
    Type type = result.getType().getElementType();
    if (numerics != Numerics::typed || !result.isFloat() || type.getIntOrFloatBitWidth() != 16)
      continue;
    Element *to = result.mutableData();
    for (int64_t i = 0; i < result.size(); ++i)
      to[i].f = roundTo(to[i].f, type, numerics);
  }
}

FailureOr<Kernel> interpreter::compile(Operation *op, Numerics numerics) {
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  if (!llvm::all_of(op->getOperandTypes(), isTensor) ||
      !llvm::all_of(op->getResultTypes(), isTensor))
    return op->emitError("cannot be interpreted: operands and results must be ranked tensors of "
                         "static shape");
  if (auto fused = dyn_cast<nn::FusedOp>(op)) {
    Block &body = fused.getBody().front();
    FailureOr<PureBlock> block =
        PureBlock::compile(body, body.getTerminator()->getOperands(), [=](Operation *inner) {
          return detail::numericsInside(inner, numerics);
        });
    if (failed(block))
      return failure();
    auto shared = std::make_shared<PureBlock>(std::move(*block));
    return Kernel([=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
      shared->run(in, out);
      detail::roundStored(out, numerics);
    });
  }
  Kernel kernel = detail::compileCompute(op, numerics);
  if (!kernel)
    kernel = detail::compileElementwise(op, numerics);
  if (!kernel)
    kernel = compileDistribution(op, numerics);
  if (!kernel)
    return op->emitError("cannot be interpreted: the evaluator does not implement '")
           << op->getName() << "'; add it there";
  return kernel;
}

FailureOr<SmallVector<Tensor>> interpreter::evaluate(Operation *op, ArrayRef<Tensor> operands,
                                                     Numerics numerics) {
  FailureOr<Kernel> kernel = compile(op, numerics);
  if (failed(kernel))
    return failure();
  SmallVector<Tensor> results(op->getNumResults());
  (*kernel)(operands, results);
  return results;
}

FailureOr<SmallVector<Tensor>> interpreter::evaluate(Block &block, ArrayRef<Tensor> arguments,
                                                     ArrayRef<Value> wanted, Numerics numerics) {
  FailureOr<PureBlock> compiled =
      PureBlock::compile(block, wanted, [=](Operation *) { return numerics; });
  if (failed(compiled))
    return failure();
  SmallVector<Tensor> results(wanted.size());
  compiled->run(arguments, results);
  return results;
}
