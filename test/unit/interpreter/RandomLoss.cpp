//===- RandomLoss.cpp - losses and metrics of random training steps -------===//

#include "RandomModule.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Weights of the samples, 1 to 3, that depend on data through integer arithmetic.
Value RandomStep::weights() {
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  // Of each sample several numbers, which may be split, or the sum of several, which may be
  // partial.
  std::string extra = isShort ? std::string(1, newDim(between(2, 4))) : "";
  const bool sums = isShort && chance(60);
  std::string all = "b" + extra, dims = sums ? "b" : all;
  Value label = input(all, i32, 7);
  if (isShort)
    label = split(label, all, extra[0]);
  if (sums)
    label = nn::ReduceOp::create(builder, location(), typeOf(dims, i32), nn::Reduction::sum,
                                 notation(all, dims), label);
  auto number = [&](double value) {
    return sums && chance(40) ? label : constant(dims, value, i32);
  };
  auto next = [&](Value mixed) { return sums && chance(40) ? label : mixed; };
  Value mixed = make<arith::AddIOp>(make<arith::MulIOp>(label, number(5)), number(3));
  mixed = make<arith::XOrIOp>(next(mixed), constant(dims, 9, i32));
  mixed = make<arith::OrIOp>(make<arith::SubIOp>(next(mixed), label), number(4));
  mixed = make<arith::AndIOp>(next(mixed), constant(dims, 3, i32));
  if (chance(50)) {
    Value wide = arith::ExtSIOp::create(builder, location(), typeOf(dims, i64), next(mixed));
    if (sums && chance(50)) {
      Value copies = repeat(wide, dims, all);
      wide = nn::ReduceOp::create(builder, location(), typeOf(dims, i64), nn::Reduction::sum,
                                  notation(all, dims), split(copies, all, extra[0]));
    }
    mixed =
        make<arith::AndIOp>(arith::TruncIOp::create(builder, location(), typeOf(dims, i32), wide),
                            constant(dims, 3, i32));
  }
  Value high =
      arith::CmpIOp::create(builder, location(), arith::CmpIPredicate::sgt, next(mixed), number(1));
  Value extraWeight =
      arith::SelectOp::create(builder, location(), high, constant(dims, 1), constant(dims, 2));
  Value low = make<arith::AndIOp>(mixed, constant(dims, 1, i32));
  if (sums && chance(50)) {
    Value copies = repeat(low, dims, all);
    low = nn::ReduceOp::create(builder, location(), typeOf(dims, i32), nn::Reduction::sum,
                               notation(all, dims), split(copies, all, extra[0]));
  }
  Value base = arith::SIToFPOp::create(builder, location(), typeOf(dims), low);
  if (chance(60)) {
    // At most 4, so that the product is no whole number but 0, which rounding could miss.
    Value more = make<arith::MulFOp>(base, constant(dims, 1.1));
    Value whole = arith::FPToSIOp::create(builder, location(), typeOf(dims, i32), more);
    base = arith::SIToFPOp::create(builder, location(), typeOf(dims), whole);
  }
  Value weight = make<arith::AddFOp>(base, extraWeight);
  if (dims == "b")
    return weight;
  return nn::ReduceOp::create(builder, location(), typeOf("b"), nn::Reduction::sum,
                              notation(dims, "b"), weight);
}

void RandomStep::measure() {
  Type f64 = builder.getF64Type();
  bool weighted = chance(50);
  Value weight = weighted ? weights() : Value();
  Value sum;
  std::vector<Var> loose;
  llvm::copy_if(pool, std::back_inserter(loose), [](Var &var) { return var.value.use_empty(); });
  for (const Var &var : loose) {
    Value term = make<math::TanhOp>(var.value);
    if (weighted && var.dims.find('b') != std::string::npos)
      term = make<arith::MulFOp>(term, repeat(weight, "b", var.dims));
    Value part = total(term, var.dims);
    sum = sum ? make<arith::AddFOp>(sum, part) : part;
  }
  Value count = weighted ? total(weight, "b") : constant("", between(1, 50), f64);
  LossOp::create(builder, location(), sum, count);
  if (chance(50)) {
    const Var &var = pool[random() % pool.size()];
    MetricOp::create(builder, location(), "mean", total(var.value, var.dims), count,
                     /*check=*/IntegerAttr());
  }
}
