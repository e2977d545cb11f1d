//===- Evaluator.cpp - compile and run pure ops ---------------------------===//

#include "interpreter/Evaluator.h"
#include "interpreter/Rounding.h"

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

/// The pure ops of `fsdp` that are the same on every rank.
static Kernel compileDistribution(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case<ConstraintOp, ReshardOp>([](auto) -> Kernel {
        return [](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) { out[0] = in[0]; };
      })
      .Case([](ViewOp view) -> Kernel {
        auto type = cast<RankedTensorType>(view.getType());
        int64_t offset = view.getOffset();
        return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
          std::copy_n(in[0].data() + offset, type.getNumElements(), to);
        });
      })
      .Case([](FlattenOp flatten) -> Kernel {
        auto type = cast<RankedTensorType>(flatten.getType());
        return makeKernel(type, [](ArrayRef<Tensor> in, Element *to) {
          for (const Tensor &input : in)
            to = std::copy_n(input.data(), input.size(), to);
        });
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
      .Default([](Operation *) { return Kernel(); });
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
