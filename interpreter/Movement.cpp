//===- Movement.cpp - lookups, slices and joins ---------------------------===//

#include "interpreter/Evaluator.h"

#include "dialect/nn/NNDialect.h"
#include "interpreter/Rounding.h"
#include "interpreter/RoundingNoise.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::fsdp::interpreter;

static RankedTensorType movedType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

static Kernel compileEmbedding(EmbeddingOp op) {
  RankedTensorType type = movedType(op);
  int64_t rows = op.getTable().getType().getDimSize(0), width = type.getShape().back();
  bool partial = op.getPartial();
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (int64_t position = 0; position < in[1].size(); ++position) {
      int64_t id = in[1].getInt(position);
      // An id without a row gives NaN, so that it cannot go unnoticed.
      bool known = id >= 0 && id < rows;
      if (partial && id == -1)
        continue; // of another rank: zeros
      for (int64_t i = 0; i < width; ++i)
        to[position * width + i] =
            known ? in[0].data()[id * width + i] : Tensor::poisonElement(true);
    }
  });
}

static Kernel compileEmbeddingGrad(EmbeddingGradOp op, Numerics numerics) {
  RankedTensorType type = movedType(op);
  int64_t rows = type.getDimSize(0), width = type.getDimSize(1);
  Rounding round(type.getElementType(), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (int64_t position = 0; position < in[0].size(); ++position) {
      int64_t id = in[0].getInt(position);
      if (id < 0 || id >= rows)
        continue;
      for (int64_t i = 0; i < width; ++i)
        to[id * width + i].f =
            RoundingNoise::held(to[id * width + i].f + in[1].getFloat(position * width + i));
    }
    for (int64_t i = 0; i < rows * width; ++i)
      to[i].f = round(to[i].f);
  });
}

Kernel mlir::fsdp::interpreter::detail::compileMove(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](EmbeddingOp op) { return compileEmbedding(op); })
      .Case([&](EmbeddingGradOp op) { return compileEmbeddingGrad(op, numerics); })
      .Case([](SliceOp op) -> Kernel {
        int64_t dim = op.getDim(), start = op.getStart();
        return [=, type = movedType(op)](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = Tensor(type);
          copyAlong(dim, -start, in[0], out[0]);
        };
      })
      .Case([](PadOp op) -> Kernel {
        int64_t dim = op.getDim(), low = op.getLow();
        return [=, type = movedType(op)](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = Tensor(type);
          copyAlong(dim, low, in[0], out[0]);
        };
      })
      .Case([](ConcatOp op) -> Kernel {
        int64_t dim = op.getDim();
        return [=, type = movedType(op)](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
          out[0] = joinParts(type, dim, in);
        };
      })
      .Default([](Operation *) { return Kernel(); });
}
