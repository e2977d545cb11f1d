//===- RandomStep.cpp - random bodies of training steps -------------------===//
//
// Everything with a kink or a jump (maxima, comparisons, argmax) is applied away from where exact
// values would tie, so that rounding cannot decide between two sides.
//
//===----------------------------------------------------------------------===//

#include "RandomModule.h"

using namespace mlir;
using namespace mlir::fsdp;
using interpreter::Tensor;

RandomStep::RandomStep(OpBuilder &builder, ModuleOp module, StepOp step, std::mt19937_64 &random,
                       interpreter::DataSet &data, const RandomStep *training)
    : builder(builder), module(module), step(step), random(random), data(data), training(training) {
  sizes['b'] = between(1, 11);
  samples = training ? training->samples : between(1, 3 * sizes['b']);
  inputs = training ? training->inputs : 0;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

std::string RandomStep::shuffled(std::string dims) {
  std::shuffle(dims.begin(), dims.end(), random);
  return dims;
}

char RandomStep::newDim(int64_t size) {
  for (char c : StringRef("acdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    if (sizes.emplace(c, size).second)
      return c;
  llvm_unreachable("a step with more than fifty dimensions");
}

SmallVector<int64_t> RandomStep::shapeOf(StringRef dims) const {
  SmallVector<int64_t> shape;
  for (char dim : dims)
    shape.push_back(sizes.at(dim));
  return shape;
}

RankedTensorType RandomStep::typeOf(StringRef dims, Type element) {
  return RankedTensorType::get(shapeOf(dims), element ? element : builder.getF32Type());
}

bool RandomStep::hasBatch(StringRef dims) const {
  return dims.find_first_of(batchDims) != StringRef::npos;
}

std::string RandomStep::notation(StringRef from, StringRef to) const {
  std::string text;
  for (char dim : from)
    text += (text.empty() ? "" : " ") + std::string(1, dim);
  text += from.empty() ? "->" : " ->";
  for (char dim : to)
    text += " " + std::string(1, dim);
  return text;
}

Location RandomStep::location() {
  return NameLoc::get(builder.getStringAttr("layer" + std::to_string(layers)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

RandomStep::Var RandomStep::use() {
  // Recent values are more likely, so that programs are deep rather than wide.
  size_t index = pool.size() - 1 - std::min<size_t>(random() % pool.size(), random() % pool.size());
  Var var = pool[isShort && chance(60) ? pool.size() - 1 : index];
  if (isShort && chance(50)) {
    var.value = scattered(var.value, var.dims);
    add(var.value, var.dims);
  }
  return var;
}

/// A weighted sum of copies of `value`, which are split: its users have a partial sum as operand.
Value RandomStep::scattered(Value value, StringRef dims) {
  std::string copies(1, newDim(between(2, 5))), all = dims.str() + copies, weight = copies;
  if (!dims.empty() && !hasBatch(dims.take_back()) && chance(50))
    weight += dims.back();
  Value terms =
      make<arith::MulFOp>(repeat(value, dims, all), repeat(parameter(weight), weight, all));
  return nn::ReduceOp::create(builder, location(), typeOf(dims), nn::Reduction::sum,
                              notation(all, dims), split(terms, all, copies[0]));
}

Value RandomStep::input(StringRef dims, Type element, int64_t classes) {
  std::string name = "x" + std::to_string(inputs++);
  size_t sampleDim = dims.find('b');
  SmallVector<int64_t> shape = shapeOf(dims);
  shape.erase(shape.begin() + sampleDim);
  shape.insert(shape.begin(), samples);
  Tensor values(RankedTensorType::get(shape, element));
  for (int64_t i = 0; i < values.size(); ++i)
    values.setNumber(i, classes ? between(0, classes - 1) : between(-1000, 1000) / 512.0);
  (void)data.add(builder.getUnknownLoc(), name, values);
  return InputOp::create(builder, location(), typeOf(dims, element), name, sampleDim, IntegerAttr(),
                         ArrayAttr(), IntegerAttr(), IntegerAttr());
}

Value RandomStep::constant(StringRef dims, double value, Type element) {
  RankedTensorType type = typeOf(dims, element);
  Attribute attribute = isa<FloatType>(type.getElementType())
                            ? Attribute(builder.getFloatAttr(type.getElementType(), value))
                            : builder.getIntegerAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder, location(), DenseElementsAttr::get(type, attribute));
}

Value RandomStep::repeat(Value value, StringRef from, StringRef to) {
  if (from == to)
    return value;
  auto element = cast<RankedTensorType>(value.getType()).getElementType();
  return nn::RepeatOp::create(builder, location(), typeOf(to, element), notation(from, to), value);
}

/// The sum of all elements in double.
Value RandomStep::total(Value value, StringRef dims) {
  RankedTensorType scalar = typeOf("", builder.getF64Type());
  return nn::ReduceOp::create(builder, location(), scalar, nn::Reduction::sum, notation(dims, ""),
                              value);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// A value with a parameter, over some of its dimensions.
void RandomStep::contract() {
  Var x = use();
  // Seldom a parameter that has a value for each sample of the batch.
  bool overBatch = chance(5);
  std::string summed, kept, shared, added;
  for (char dim : x.dims) {
    bool batch = batchDims.find(dim) != std::string::npos && !overBatch;
    if (!batch && chance(60))
      summed += dim;
    else
      kept += dim;
    if (!batch && kept.size() && kept.back() == dim && chance(15))
      shared += dim;
  }
  for (int64_t i = between(summed.empty() && shared.empty() ? 1 : 0, 2); i > 0; --i)
    added += newDim(between(1, 5));
  std::string weight = shuffled(summed + shared + added), result = shuffled(kept + added);
  if (result.size() > 4)
    return;
  bool first = chance(50);
  Value w = parameter(weight);
  std::string text = (first ? x.dims + "," + weight : weight + "," + x.dims) + "->" + result;
  add(nn::EinsumOp::create(builder, location(), typeOf(result), text, first ? x.value : w,
                           first ? w : x.value),
      result);
}

/// Two values, also over the batch.
void RandomStep::contractValues() {
  Var x = use(), y = use();
  std::string result, all = x.dims;
  for (char dim : y.dims)
    if (all.find(dim) == std::string::npos)
      all += dim;
  for (char dim : all) {
    bool both = x.dims.find(dim) != std::string::npos && y.dims.find(dim) != std::string::npos;
    if (!both || chance(50))
      result += dim;
  }
  result = shuffled(result);
  if (result.size() > 4)
    return;
  add(nn::EinsumOp::create(builder, location(), typeOf(result),
                           x.dims + "," + y.dims + "->" + result, x.value, y.value),
      result);
}

void RandomStep::bias() {
  Var x = use();
  std::string dims;
  for (char dim : x.dims)
    if (batchDims.find(dim) == std::string::npos && chance(70))
      dims += dim;
  dims = shuffled(dims);
  Value spread = repeat(parameter(dims), dims, x.dims);
  switch (between(0, 2)) {
  case 0:
    return add(make<arith::AddFOp>(x.value, spread), x.dims);
  case 1:
    return add(make<arith::MulFOp>(spread, x.value), x.dims);
  default:
    return add(make<arith::SubFOp>(x.value, spread), x.dims);
  }
}

void RandomStep::smooth() {
  Var x = use();
  // Sums over copies that are split.
  std::string terms = x.dims + newDim(between(2, 4));
  const bool sums = isShort && chance(60);
  auto total = [&](Value value) -> Value {
    Value copies = split(repeat(value, x.dims, terms), terms, terms.back());
    return nn::ReduceOp::create(builder, location(), typeOf(x.dims), nn::Reduction::sum,
                                notation(terms, x.dims), copies);
  };
  Value squares = make<arith::AddFOp>(make<arith::MulFOp>(x.value, x.value), constant(x.dims, 0.5));
  Value small = make<math::TanhOp>(x.value);
  auto positive = [&] { return sums ? total(squares) : squares; };
  auto bounded = [&] { return sums ? total(small) : make<math::TanhOp>(x.value); };
  if (sums)
    x.value = total(small);
  for (int64_t i = isShort ? 5 : 1; i > 1; --i)
    add(smoothOf(x, positive, bounded), x.dims);
  add(smoothOf(x, positive, bounded), x.dims);
}

Value RandomStep::smoothOf(const Var &x, llvm::function_ref<Value()> positive,
                           llvm::function_ref<Value()> bounded) {
  switch (between(0, 13)) {
  case 0:
    return make<math::ExpOp>(bounded());
  case 1:
    return make<math::LogOp>(positive());
  case 2:
    return make<math::Log1pOp>(positive());
  case 3:
    return make<math::SqrtOp>(positive());
  case 4:
    return make<math::RsqrtOp>(positive());
  case 5:
    return make<math::ErfOp>(x.value);
  case 6:
    return make<math::SinOp>(x.value);
  case 7:
    return make<math::CosOp>(x.value);
  case 8:
    return make<arith::NegFOp>(x.value);
  case 9:
    return make<math::PowFOp>(positive(), constant(x.dims, 1.5));
  case 10:
    return make<math::PowFOp>(positive(), bounded());
  default:
    return bounded();
  }
}

void RandomStep::kink() {
  Var x = use();
  Value shifted = isShort && chance(60) ? scattered(make<math::TanhOp>(x.value), x.dims)
                                        : make<arith::AddFOp>(x.value, constant(x.dims, 0.07));
  Value other = constant(x.dims, chance(50) ? 0.0 : 0.35);
  switch (between(0, 3)) {
  case 0:
    return add(make<arith::MaximumFOp>(shifted, other), x.dims);
  case 1:
    return add(make<arith::MinimumFOp>(other, shifted), x.dims);
  case 2:
    return add(make<math::AbsFOp>(shifted), x.dims);
  default:
    Value less =
        arith::CmpFOp::create(builder, location(), arith::CmpFPredicate::OLT, shifted, other);
    return add(arith::SelectOp::create(builder, location(), less,
                                       make<arith::MulFOp>(shifted, shifted), x.value),
               x.dims);
  }
}

/// Two values of the same dimensions, in any order; the smaller one is broadcast.
void RandomStep::combine() {
  Var x = use(), y = use();
  std::string all = x.dims;
  for (char dim : y.dims)
    if (all.find(dim) == std::string::npos)
      all += dim;
  if (all.size() > 4)
    return;
  all = shuffled(all);
  auto spread = [&](const Var &v) -> Value {
    bool permuted = v.dims.size() == all.size() && v.dims != all;
    if (permuted && chance(50))
      return nn::RearrangeOp::create(builder, location(), typeOf(all), notation(v.dims, all),
                                     v.value, DictionaryAttr())
          .getResult();
    return repeat(v.value, v.dims, all);
  };
  Value a = spread(x), c = spread(y);
  switch (between(0, 4)) {
  case 0:
    return add(make<arith::AddFOp>(a, c), all);
  case 1:
    return add(make<arith::SubFOp>(a, c), all);
  case 2:
    return add(make<arith::MulFOp>(a, make<math::TanhOp>(c)), all);
  case 3: {
    Value one = constant(all, 1);
    return add(make<arith::DivFOp>(a, make<arith::AddFOp>(one, make<arith::MulFOp>(c, c))), all);
  }
  default:
    return add(math::FmaOp::create(builder, location(), a, make<math::TanhOp>(c), a), all);
  }
}

/// Transposes, splits and merges of dimensions.
void RandomStep::move() {
  Var x = use();
  auto rearrange = [&](std::string from, std::string to, std::string dims) {
    add(nn::RearrangeOp::create(builder, location(), typeOf(dims), from + " -> " + to, x.value,
                                DictionaryAttr()),
        dims);
  };
  auto spaced = [](StringRef dims) {
    std::string text;
    for (char dim : dims)
      text += (text.empty() ? "" : " ") + std::string(1, dim);
    return text;
  };
  // Split a dimension of the features.
  for (char dim : x.dims)
    if (batchDims.find(dim) == std::string::npos && sizes[dim] == 4 && x.dims.size() < 4) {
      char major = newDim(2), minor = newDim(2);
      std::string group = {'(', major, ' ', minor, ')'}, from, dims;
      for (char other : x.dims) {
        from += (from.empty() ? "" : " ") + (other == dim ? group : std::string(1, other));
        dims += other == dim ? std::string{major, minor} : std::string(1, other);
      }
      dims = shuffled(dims);
      return rearrange(from, spaced(dims), dims);
    }
  // Merge two dimensions; the batch may be one of them.
  if (x.dims.size() >= 2 && chance(60)) {
    std::string order = shuffled(x.dims);
    char merged = newDim(sizes[order[0]] * sizes[order[1]]);
    if (hasBatch(order.substr(0, 2)))
      batchDims += merged;
    std::string group = {'(', order[0], ' ', order[1], ')'};
    std::string rest = order.substr(2);
    bool front = chance(50);
    return rearrange(
        spaced(x.dims),
        rest.empty() ? group : (front ? group + " " + spaced(rest) : spaced(rest) + " " + group),
        front ? merged + rest : rest + merged);
  }
  std::string dims = shuffled(x.dims);
  if (dims != x.dims)
    rearrange(spaced(x.dims), spaced(dims), dims);
}

void RandomStep::reduce() {
  Var x = use();
  std::string dims;
  for (char dim : x.dims)
    if (chance(60))
      dims += dim;
  dims = shuffled(dims);
  if (dims.size() == x.dims.size())
    return;
  auto kind = oneOf<nn::Reduction>({nn::Reduction::sum, nn::Reduction::mean, nn::Reduction::max});
  bool wide = chance(30);
  RankedTensorType type = typeOf(dims, wide ? Type(builder.getF64Type()) : Type());
  Value reduced =
      nn::ReduceOp::create(builder, location(), type, kind, notation(x.dims, dims), x.value);
  if (wide)
    reduced = arith::TruncFOp::create(builder, location(), typeOf(dims), reduced);
  add(reduced, dims);
}

/// Statistics over the batch that every sample then depends on.
void RandomStep::normalizeOverBatch() {
  Var x = use();
  std::string dims;
  for (char dim : x.dims)
    if (batchDims.find(dim) == std::string::npos)
      dims += dim;
  auto kind = chance(70) ? nn::Reduction::mean : nn::Reduction::max;
  auto over = [&](nn::Reduction kind, Value value) {
    Value reduced = dims == x.dims ? value
                                   : nn::ReduceOp::create(builder, location(), typeOf(dims), kind,
                                                          notation(x.dims, dims), value)
                                         .getResult();
    return repeat(reduced, dims, x.dims);
  };
  Value centered = make<arith::SubFOp>(x.value, over(kind, x.value));
  Value variance = over(nn::Reduction::mean, make<arith::MulFOp>(centered, centered));
  Value scale = make<math::RsqrtOp>(make<arith::AddFOp>(variance, constant(x.dims, 0.1)));
  add(make<arith::MulFOp>(centered, scale), x.dims);
}

/// Through another float type and back.
void RandomStep::convert() {
  Var x = use();
  bool wide = chance(50);
  Type other = wide ? Type(builder.getF64Type()) : builder.getBF16Type();
  Value there =
      wide ? arith::ExtFOp::create(builder, location(), typeOf(x.dims, other), x.value).getResult()
           : arith::TruncFOp::create(builder, location(), typeOf(x.dims, other), x.value);
  Value moved = make<arith::MulFOp>(there, constant(x.dims, 0.5, other));
  add(wide ? arith::TruncFOp::create(builder, location(), typeOf(x.dims), moved).getResult()
           : arith::ExtFOp::create(builder, location(), typeOf(x.dims), moved),
      x.dims);
}

/// Requests a sharding: some axes of the mesh on some dimensions.
void RandomStep::constrain() {
  Var x = use();
  MeshOp mesh = getMeshOp(step);
  std::vector<SmallVector<StringAttr>> dims(x.dims.size());
  for (StringAttr axis : mesh.getMesh().getAxisNames())
    if (!dims.empty() && chance(50)) {
      size_t dim = random() % dims.size();
      for (StringAttr part : partsOf(axis))
        dims[dim++ % dims.size()].push_back(part);
    }
  auto sharding = ShardingAttr::getCanonical(FlatSymbolRefAttr::get(mesh), dims);
  add(ConstraintOp::create(builder, location(), x.value.getType(), x.value, sharding,
                           DenseI64ArrayAttr(), /*sequence_parallel=*/false, ArrayAttr()),
      x.dims);
}

/// A constant other than a splat, over features only.
void RandomStep::table() {
  Var x = use();
  std::string dims;
  for (char dim : x.dims)
    if (batchDims.find(dim) == std::string::npos)
      dims += dim;
  RankedTensorType type = typeOf(dims);
  SmallVector<float> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    values.push_back(between(-8, 8) / 8.0f);
  Value constant = arith::ConstantOp::create(builder, location(),
                                             DenseElementsAttr::get(type, ArrayRef<float>(values)));
  add(make<arith::MulFOp>(x.value, repeat(constant, dims, x.dims)), x.dims);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void RandomStep::addLayer() {
  ++layers;
  switch (between(0, 26)) {
  case 0:
  case 1:
  case 2:
    contract();
    break;
  case 3:
    contractValues();
    break;
  case 4:
  case 5:
    bias();
    break;
  case 6:
  case 7:
    smooth();
    break;
  case 8:
    kink();
    break;
  case 9:
    combine();
    break;
  case 10:
    move();
    break;
  case 11:
    reduce();
    break;
  case 12:
    normalizeOverBatch();
    break;
  case 13:
    classify();
    break;
  case 14:
    constrain();
    break;
  case 15:
  case 16:
    normalizeRows();
    break;
  case 17:
    chance(60) ? attend() : continueText();
    break;
  case 18:
    turn();
    break;
  case 19:
    lookUp();
    break;
  case 20:
    cutAndJoin();
    break;
  case 21:
    drop();
    break;
  case 22:
  case 23:
  case 24:
    contractRows();
    break;
  case 25:
    accumulate();
    break;
  default:
    chance(50) ? convert() : table();
  }
}

void RandomStep::build() {
  std::string dims = "b";
  for (int64_t i = between(1, 2); i > 0; --i)
    dims += newDim(between(1, 5));
  for (int64_t i = between(1, 2); i > 0; --i) {
    std::string order = shuffled(dims);
    add(input(order, builder.getF32Type(), 0), order);
  }
  while (module.getOps<ParamOp>().empty())
    contract();
  for (int64_t i = between(2, 7); i > 0; --i)
    addLayer();
  addBesides();
  measure();
}

void RandomStep::buildShort() {
  isShort = true;
  std::string dims = "b";
  for (int64_t i = between(1, 2); i > 0; --i)
    dims += newDim(between(2, 5));
  dims = shuffled(dims);
  add(input(dims, builder.getF32Type(), 0), dims);
  if (chance(70))
    constrain();
  while (module.getOps<ParamOp>().empty())
    contract();
  for (int64_t i = between(1, 3); i > 0; --i) {
    if (chance(50))
      constrain();
    addLayer();
  }
  if (chance(50))
    constrain();
  addBesides();
  measure();
}

/// With draws of its own, so that those of a seed with a draw for it are all that change.
void RandomStep::addBesides() {
  std::mt19937_64 others = random;
  random.seed(others());
  if (attends)
    attend(/*toItself=*/true);
  if (computesInRegion)
    computeInRegion();
  random = others;
}
