//===- Elementwise.cpp - evaluation of `arith` and `math` on tensors ------===//

#include "interpreter/Evaluator.h"
#include "interpreter/Rounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

namespace {

Element ofInt(int64_t value) {
  Element result;
  result.i = value;
  return result;
}

/// Builds kernels that compute element i of the result from the elements i of the operands.
struct Elements {
  RankedTensorType type;
  Rounding round;

  /// `compute` maps an array of Elements, one per operand, to the Element of the result.
  template <unsigned Arity, typename Fn> Kernel map(Fn compute) const {
    RankedTensorType type = this->type;
    Rounding round = this->round;
    return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
      const Element *from[Arity];
      for (unsigned k = 0; k < Arity; ++k)
        from[k] = in[k].data();
      bool isFloat = isa<FloatType>(type.getElementType());
      for (int64_t i = 0, size = type.getNumElements(); i < size; ++i) {
        Element x[Arity];
        for (unsigned k = 0; k < Arity; ++k)
          x[k] = from[k][i];
        to[i] = compute(x);
        if (isFloat)
          to[i].f = round(to[i].f);
      }
    });
  }
  /// Of floats and into floats, by the number of arguments of `fn`.
  Kernel unary(double (*fn)(double)) const {
    return map<1>([=](const Element *x) { return Element{fn(x[0].f)}; });
  }
  Kernel binary(double (*fn)(double, double)) const {
    return map<2>([=](const Element *x) { return Element{fn(x[0].f, x[1].f)}; });
  }
  /// Of integers and into integers, wrapped to their width.
  Kernel integer(uint64_t (*fn)(uint64_t, uint64_t)) const {
    Type element = type.getElementType();
    return map<2>([=](const Element *x) {
      return ofInt(wrapTo(static_cast<int64_t>(fn(x[0].i, x[1].i)), element));
    });
  }
  /// Of integers into bool or integers, by their width.
  template <typename Fn> Kernel fromIntegers(Fn fn) const {
    return map<2>([=](const Element *x) { return ofInt(fn(x[0].i, x[1].i)); });
  }
};

} // namespace

static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
static double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

/// Conversions between widths and between integers and floats.
static Kernel compileConversion(Operation *op, const Elements &b) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = b.type.getElementType();
  bool bit = from.isInteger(1);
  uint64_t mask =
      isa<IntegerType>(from) ? llvm::maskTrailingOnes<uint64_t>(from.getIntOrFloatBitWidth()) : 0;
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return b.map<1>([](const Element *x) { return x[0]; }); })
      .Case([&](arith::SIToFPOp) {
        return b.map<1>(
            [=](const Element *x) { return Element{static_cast<double>(bit ? -x[0].i : x[0].i)}; });
      })
      .Case([&](arith::UIToFPOp) {
        return b.map<1>([=](const Element *x) {
          return Element{static_cast<double>(static_cast<uint64_t>(x[0].i) & mask)};
        });
      })
      .Case([&](arith::FPToSIOp) {
        return b.map<1>([=](const Element *x) { return ofInt(wrapTo(truncate(x[0].f), to)); });
      })
      .Case([&](arith::ExtSIOp) {
        return b.map<1>([=](const Element *x) { return ofInt(bit ? -x[0].i : x[0].i); });
      })
      .Case([&](arith::ExtUIOp) {
        return b.map<1>([=](const Element *x) {
          return ofInt(static_cast<int64_t>(static_cast<uint64_t>(x[0].i) & mask));
        });
      })
      .Case([&](arith::TruncIOp) {
        return b.map<1>([=](const Element *x) { return ofInt(wrapTo(x[0].i, to)); });
      })
      .Default([](Operation *) { return Kernel(); });
}

static Kernel compileArith(Operation *op, const Elements &b) {
  Type operand = op->getNumOperands() ? getElementTypeOrSelf(op->getOperand(0).getType()) : Type();
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](arith::AddFOp) { return b.binary([](double x, double y) { return x + y; }); })
      .Case([&](arith::SubFOp) { return b.binary([](double x, double y) { return x - y; }); })
      .Case([&](arith::MulFOp) { return b.binary([](double x, double y) { return x * y; }); })
      .Case([&](arith::DivFOp) { return b.binary([](double x, double y) { return x / y; }); })
      .Case([&](arith::NegFOp) { return b.unary([](double x) { return -x; }); })
      .Case([&](arith::MaximumFOp) { return b.binary(maximum); })
      .Case([&](arith::MinimumFOp) { return b.binary(minimum); })
      .Case([&](arith::MaxNumFOp) { return b.binary(std::fmax); })
      .Case([&](arith::MinNumFOp) { return b.binary(std::fmin); })
      .Case([&](arith::AddIOp) { return b.integer([](uint64_t x, uint64_t y) { return x + y; }); })
      .Case([&](arith::SubIOp) { return b.integer([](uint64_t x, uint64_t y) { return x - y; }); })
      .Case([&](arith::MulIOp) { return b.integer([](uint64_t x, uint64_t y) { return x * y; }); })
      .Case([&](arith::AndIOp) { return b.integer([](uint64_t x, uint64_t y) { return x & y; }); })
      .Case([&](arith::OrIOp) { return b.integer([](uint64_t x, uint64_t y) { return x | y; }); })
      .Case([&](arith::XOrIOp) { return b.integer([](uint64_t x, uint64_t y) { return x ^ y; }); })
      .Case([&](arith::MaxSIOp) {
        return b.fromIntegers([](int64_t x, int64_t y) { return std::max(x, y); });
      })
      .Case([&](arith::MinSIOp) {
        return b.fromIntegers([](int64_t x, int64_t y) { return std::min(x, y); });
      })
      .Case([&](arith::CmpFOp cmp) {
        arith::CmpFPredicate predicate = cmp.getPredicate();
        return b.map<2>([=](const Element *x) {
          return ofInt(arith::applyCmpPredicate(predicate, APFloat(x[0].f), APFloat(x[1].f)));
        });
      })
      .Case([&](arith::CmpIOp cmp) {
        arith::CmpIPredicate predicate = cmp.getPredicate();
        const unsigned bits = operand.getIntOrFloatBitWidth();
        return b.fromIntegers([=](int64_t x, int64_t y) {
          return arith::applyCmpPredicate(predicate, APInt(64, x).trunc(bits),
                                          APInt(64, y).trunc(bits));
        });
      })
      .Case([&](arith::SelectOp) {
        return b.map<3>([](const Element *x) { return x[0].i ? x[1] : x[2]; });
      })
      .Case([&](arith::ConstantOp constant) -> Kernel {
        auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!dense)
          return {};
        return [value = Tensor::fromAttribute(dense)](
                   ArrayRef<Tensor>, MutableArrayRef<Tensor> out) { out[0] = value; };
      })
      .Default([&](Operation *op) { return compileConversion(op, b); });
}

static Kernel compileMath(Operation *op, const Elements &b) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](math::ExpOp) { return b.unary(std::exp); })
      .Case([&](math::Exp2Op) { return b.unary(std::exp2); })
      .Case([&](math::ExpM1Op) { return b.unary(std::expm1); })
      .Case([&](math::LogOp) { return b.unary(std::log); })
      .Case([&](math::Log2Op) { return b.unary(std::log2); })
      .Case([&](math::Log1pOp) { return b.unary(std::log1p); })
      .Case([&](math::SqrtOp) { return b.unary(std::sqrt); })
      .Case([&](math::RsqrtOp) { return b.unary([](double x) { return 1 / std::sqrt(x); }); })
      .Case([&](math::TanhOp) { return b.unary(std::tanh); })
      .Case([&](math::ErfOp) { return b.unary(std::erf); })
      .Case([&](math::AbsFOp) { return b.unary(std::fabs); })
      .Case([&](math::SinOp) { return b.unary(std::sin); })
      .Case([&](math::CosOp) { return b.unary(std::cos); })
      .Case([&](math::FloorOp) { return b.unary(std::floor); })
      .Case([&](math::CeilOp) { return b.unary(std::ceil); })
      .Case([&](math::PowFOp) { return b.binary(std::pow); })
      .Case([&](math::FmaOp) {
        return b.map<3>([](const Element *x) { return Element{std::fma(x[0].f, x[1].f, x[2].f)}; });
      })
      .Default([](Operation *) { return Kernel(); });
}

Kernel mlir::fsdp::interpreter::detail::compileElementwise(Operation *op, Numerics numerics) {
  if (op->getNumResults() != 1)
    return {};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Elements builder{type, Rounding(type.getElementType(), numerics)};
  if (isa<arith::ArithDialect>(op->getDialect()))
    return compileArith(op, builder);
  if (isa<math::MathDialect>(op->getDialect()))
    return compileMath(op, builder);
  return {};
}
