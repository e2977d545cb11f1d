//===- RandomRows.cpp - products of rows, norms, attention, lookups, losses ===//

#include "RandomModule.h"

using namespace mlir;
using namespace mlir::fsdp;

/// `x` with its dimensions in the order `dims`.
Value RandomStep::ordered(const Var &x, StringRef dims) {
  if (dims == x.dims)
    return x.value;
  return nn::RearrangeOp::create(builder, location(), typeOf(dims), notation(x.dims, dims), x.value,
                                 DictionaryAttr());
}

/// A dimension of another size in the place of `dim`.
char RandomStep::resize(char dim, int64_t size) {
  char other = newDim(size);
  if (batchDims.find(dim) != std::string::npos)
    batchDims += other;
  return other;
}

/// A product of two matrices, whose rows are all outer dimensions, and an epilogue: the product and
/// the values computed from it are both used later.
void RandomStep::contractRows() {
  Var x = use();
  std::string from = shuffled(x.dims);
  if (from.size() < 2 || hasBatch(from.substr(from.size() - 1)))
    return;
  std::string rows = from.substr(0, from.size() - 1), to = rows + newDim(between(1, 5));
  std::string weight = from.substr(from.size() - 1) + to.substr(to.size() - 1);
  Value product =
      nn::EinsumOp::create(builder, location(), typeOf(to), from + "," + weight + "->" + to,
                           ordered(x, from), parameter(weight));
  Value other = product;
  switch (between(0, 2)) {
  case 0: // a bias
    other = repeat(parameter(to.substr(to.size() - 1)), to.substr(to.size() - 1), to);
    break;
  case 1: // a residual
    if (hasBatch(to) && to.find('b') != std::string::npos)
      other = input(to, builder.getF32Type(), 0);
    break;
  default: // a gate
    other = make<math::TanhOp>(product);
  }
  Value sum =
      chance(50) ? make<arith::AddFOp>(product, other) : make<arith::SubFOp>(product, other);
  if (chance(60))
    add(chance(50) ? product : sum, to);
  Value kinked =
      make<arith::MaximumFOp>(make<arith::AddFOp>(sum, constant(to, 0.07)), constant(to, 0));
  Value activated = chance(50) ? kinked : make<math::TanhOp>(sum);
  add(activated, to);
  if (chance(30))
    add(make<arith::MulFOp>(product, other), to);
  if (chance(50))
    return;
  // Another product of the result, with the first one around it.
  std::string last = rows + newDim(sizes[to.back()]), square = {to.back(), last.back()};
  Value second =
      nn::EinsumOp::create(builder, location(), typeOf(last), to + "," + square + "->" + last,
                           activated, parameter(square));
  add(make<arith::AddFOp>(second, chance(50) ? product : make<arith::AddFOp>(product, other)),
      last);
}

/// Occasionally requests a split of the rows along `dim`, if they are not those of the batch.
Value RandomStep::splitRow(Value value, StringRef dims, char dim) {
  if (hasBatch(StringRef(&dim, 1)))
    return value;
  std::mt19937_64 others = random; // so that what a seed draws besides stays
  random.seed(others());
  if (chance(30))
    value = split(value, dims, dim);
  random = others;
  return value;
}

void RandomStep::normalizeRows() {
  Var x = use();
  if (x.dims.empty())
    return;
  std::string dims = shuffled(x.dims), rows = dims.substr(0, dims.size() - 1),
              row = dims.substr(dims.size() - 1);
  // The batch as a row, with a parameter of its length, is a rare case.
  if (hasBatch(row) && chance(60))
    return;
  Value value = splitRow(ordered(x, dims), dims, dims.back());
  FloatAttr eps = builder.getF64FloatAttr(0.125); // as a constant of f32 it is the same number
  RankedTensorType type = typeOf(dims), rowsType = typeOf(rows);
  Value y;
  switch (between(0, 2)) {
  case 0:
    y = nn::SoftmaxOp::create(builder, location(), type, value);
    break;
  case 1:
    y = nn::LayerNormOp::create(builder, location(), TypeRange{type, rowsType, rowsType}, value,
                                parameter(row), parameter(row), eps)
            .getY();
    break;
  default:
    y = nn::RmsNormOp::create(builder, location(), TypeRange{type, rowsType}, value, parameter(row),
                              eps)
            .getY();
  }
  add(splitRow(y, dims, dims.back()), dims);
}

/// Occasionally requests a split of the heads, dimension 1 of `queries`, over an axis, so that
/// groups and the heads of each take a part of it.
Value RandomStep::splitHeads(Value queries) {
  std::mt19937_64 own = random; // so that what a seed draws besides stays
  own.seed(own());
  MeshOp mesh = getMeshOp(step);
  ArrayRef<StringAttr> axes = mesh.getMesh().getAxisNames();
  StringAttr axis = axes[own() % axes.size()];
  if (own() % 2)
    return queries;
  SmallVector<ArrayAttr> dims(4, builder.getArrayAttr({}));
  dims[1] = getAxisArray(builder.getContext(), axis);
  auto sharding = ShardingAttr::get(builder.getContext(), FlatSymbolRefAttr::get(mesh), dims,
                                    SmallVector<bool>{true, false, true, true}, {});
  return ConstraintOp::create(builder, location(), queries.getType(), queries, sharding,
                              DenseI64ArrayAttr(), /*sequence_parallel=*/false, ArrayAttr());
}

/// Now and then adds a bias to the inputs of an attention whose heads, queries and keys are `dims`,
/// of a parameter or not, and for all heads or each.
bool RandomStep::addBias(SmallVectorImpl<Value> &inputs, std::string dims) {
  std::mt19937_64 others = random; // so that what a seed draws besides stays
  random.seed(others());
  const bool has = chance(50);
  if (has) {
    if (chance(40))
      dims[0] = newDim(1);
    if (dims[1] == dims[2])
      dims[2] = newDim(sizes[dims[1]]);
    std::string learned;
    for (char dim : dims)
      if (!hasBatch(std::string(1, dim)))
        learned += dim;
    // The gradient of a constant is not needed.
    Value bias = chance(30) ? constant(dims, 0.3) : repeat(parameter(learned), learned, dims);
    inputs.push_back(splitRow(bias, dims, dims[0]));
  }
  random = others;
  return has;
}

/// Queries and keys are made of one value; any of its dimensions may be the batch. `toItself`: a
/// sequence of its own, if the value leaves room for it, attends to itself.
void RandomStep::attend(bool toItself) {
  Var x = use();
  std::string dims = x.dims;
  toItself &= dims.size() < 4;
  const char sequence = toItself ? newDim(balances ? 4 * between(1, 3) : 2 * between(1, 3)) : '\0';
  if (toItself)
    dims += sequence;
  while (dims.size() < 4)
    dims += newDim(between(1, 3));
  dims = shuffled(dims);
  if (toItself)
    std::swap(dims[2], dims[dims.find(sequence)]);
  // A width that is the batch would keep microbatches out.
  if (toItself && hasBatch(std::string(1, dims[3])))
    std::swap(dims[0], dims[3]);
  char heads = dims[1];
  std::string scaled;
  for (char dim : dims)
    if (!hasBatch(std::string(1, dim)))
      scaled += dim;
  auto varied = [&] {
    return make<arith::MulFOp>(repeat(x.value, x.dims, dims),
                               repeat(parameter(scaled), scaled, dims));
  };
  Value q = splitHeads(varied()), k = varied(), v = varied();
  if (isShort && chance(30))
    v = scattered(v, dims);
  std::string kDims = dims;
  if (chance(50)) {
    // Fewer groups than heads.
    kDims[1] = newDim(sizes[heads] % 2 == 0 && chance(50) ? sizes[heads] / 2 : 1);
    std::string mix = {heads, kDims[1]};
    auto grouped = [&](Value value) {
      return nn::EinsumOp::create(builder, location(), typeOf(kDims),
                                  dims + "," + mix + "->" + kDims, value, parameter(mix))
          .getResult();
    };
    if (!hasBatch(std::string(1, heads))) {
      k = grouped(k);
      v = grouped(v);
    } else {
      kDims = dims;
    }
  }
  if (!toItself && chance(30)) {
    // More keys than queries.
    kDims[2] = resize(kDims[2], 2 * sizes[kDims[2]]);
    auto doubled = [&](Value value) {
      return nn::ConcatOp::create(builder, location(), typeOf(kDims),
                                  ValueRange{value, make<math::TanhOp>(value)}, 2)
          .getResult();
    };
    k = doubled(k);
    v = doubled(v);
  }
  // In any order, and in one operand where that can be.
  std::string letters = shuffled("bht") + "d";
  auto inOrder = [&](StringRef of) {
    std::string to;
    for (char letter : letters)
      to += of[StringRef("bhtd").find(letter)];
    return to;
  };
  std::string outDims = inOrder(dims), rows = dims.substr(0, 3);
  SmallVector<Value> inputs = {ordered({q, dims}, outDims), ordered({k, kDims}, inOrder(kDims)),
                               ordered({v, kDims}, inOrder(kDims))};
  if (kDims == dims && chance(50)) {
    size_t at = between(0, 3);
    letters.insert(at, "n");
    std::string one = outDims, all = outDims;
    one.insert(at, 1, newDim(1));
    all.insert(at, 1, newDim(3));
    for (Value &input : inputs)
      input = repeat(input, outDims, one);
    inputs = {nn::ConcatOp::create(builder, location(), typeOf(all), inputs, at)};
  }
  std::string order;
  for (char letter : letters)
    order += {letter, ' '};
  order.pop_back();
  const bool plain = toItself && balances, free = toItself && inRing;
  const bool bias = !plain && !free && addBias(inputs, {dims[1], dims[2], kDims[2]});
  const bool causal = chance(toItself ? 85 : 60),
             documents = dims[0] == 'b' && chance(toItself ? 20 : 50);
  auto flag = [&](bool is) { return is ? builder.getUnitAttr() : UnitAttr(); };
  // Documents follow one another, or any that are equal are one.
  if (documents) {
    const std::string of = {dims[0], kDims[2]};
    inputs.push_back(sinceIn(input(of, builder.getI32Type(), between(1, 3)), of));
  }
  auto attention = nn::AttentionOp::create(
      builder, location(), TypeRange{typeOf(outDims), typeOf(rows)}, builder.getStringAttr(order),
      inputs, builder.getF64FloatAttr(0.5), flag(causal),
      causal && chance(40) && !plain ? builder.getI64IntegerAttr(between(1, sizes[kDims[2]]))
                                     : IntegerAttr(),
      chance(25) ? builder.getF64FloatAttr(0.75) : FloatAttr(), flag(bias), flag(documents),
      nn::KeyExchangeAttr(), IntegerAttr(), DenseI64ArrayAttr(), ArrayAttr());
  add(attention.getOut(), outDims);
}

/// Mostly not the tokens, whose last dimension are positions, but how long ago some of them were,
/// now and then with these split.
Value RandomStep::sinceIn(Value tokens, StringRef dims) {
  std::mt19937_64 others = random; // so that what a seed draws besides stays
  random.seed(others());
  Value since = tokens;
  if (chance(80)) {
    SmallVector<int64_t> sequence = {static_cast<int64_t>(between(0, 2))};
    if (chance(30))
      sequence.push_back(between(0, 2));
    since = nn::PositionsSinceOp::create(
        builder, location(), cast<RankedTensorType>(tokens.getType()).clone(builder.getI32Type()),
        tokens, builder.getDenseI64ArrayAttr(sequence),
        chance(50) ? builder.getUnitAttr() : UnitAttr());
    since = splitRow(since, dims, dims.back());
  }
  random = others;
  return since;
}

/// Now and then positions of each sample along dimension `over`, where one of it and the first
/// dimension is the batch and the other one is not; null otherwise.
Value RandomStep::positionsFor(StringRef dims, int64_t over) {
  const std::string rows = {dims[0], dims[over]};
  if (over == 0 || rows.find('b') == std::string::npos ||
      rows.find_first_of(batchDims) != rows.find_last_of(batchDims))
    return Value();
  std::mt19937_64 others = random; // so that what a seed draws besides stays
  random.seed(others());
  Value positions = chance(50) ? input(rows, builder.getI32Type(), 60) : Value();
  if (positions && dims[0] == 'b')
    positions = sinceIn(positions, rows);
  random = others;
  return positions;
}

/// New rows among those that are kept, and queries that attend to them. Neither has a derivative:
/// in training they are made of inputs alone.
void RandomStep::continueText() {
  const int64_t groups = between(1, 4), kept = between(1, 6), count = between(1, kept);
  const char group = newDim(groups), head = newDim(groups * between(1, 2)), row = newDim(count),
             key = newDim(kept), width = newDim(between(1, 4));
  const std::string keyDims = {'b', group, key, width}, newDims = {'b', group, row, width};
  const bool queriesFirst = chance(50);
  const std::string dims =
      queriesFirst ? std::string{'b', row, head, width} : std::string{'b', head, row, width};
  auto made = [&](const std::string &of, char split) {
    Value value = input(of, builder.getF32Type(), 0);
    if (training && chance(50)) {
      const std::string weight(1, split);
      value = make<arith::MulFOp>(value, repeat(parameter(weight), weight, of));
    }
    std::mt19937_64 others = random; // so that what a seed draws besides stays
    random.seed(others());
    if (training && chance(25))
      value = scattered(value, of);
    random = others;
    return splitRow(value, of, split);
  };
  // A position after the last is among them.
  Value positions = input(std::string{'b', row}, builder.getI32Type(), kept + 1);
  auto written = [&]() -> Value {
    Value table = made(keyDims, oneOf<char>({group, key, width})),
          rows = made(newDims, oneOf<char>({group, row, width}));
    Value all =
        nn::WriteRowsOp::create(builder, location(), table.getType(), table, rows, positions, 2);
    return splitRow(all, keyDims, oneOf<char>({group, key, width}));
  };
  Value keys = written(), values = written();
  IntegerAttr window = chance(40) ? builder.getI64IntegerAttr(between(1, 4)) : IntegerAttr();
  FloatAttr softcap = chance(40) ? builder.getF64FloatAttr(0.5) : FloatAttr();
  add(keys, keyDims);
  add(nn::CachedAttentionOp::create(builder, location(), typeOf(dims),
                                    builder.getStringAttr(queriesFirst ? "b t h d" : "b h t d"),
                                    made(dims, oneOf<char>({head, row, width})), keys, values,
                                    positions, builder.getF64FloatAttr(0.5), window, softcap),
      dims);
}

void RandomStep::turn() {
  Var x = use();
  if (x.dims.size() < 2)
    return;
  std::string dims = shuffled(x.dims);
  Value value = ordered(x, dims);
  int64_t over = between(0, dims.size() - 2);
  if (int64_t size = sizes[dims.back()]; size % 2 != 0) {
    dims.back() = resize(dims.back(), size + 1);
    value =
        nn::PadOp::create(builder, location(), typeOf(dims), value, dims.size() - 1, between(0, 1));
  }
  UnitAttr inverse = chance(30) ? builder.getUnitAttr() : UnitAttr();
  FloatAttr factor, from, to, magnitude;
  nn::RopeRampAttr ramp;
  if (chance(30)) {
    factor = builder.getF64FloatAttr(4), magnitude = builder.getF64FloatAttr(1.25);
    from = builder.getF64FloatAttr(0.9), to = builder.getF64FloatAttr(0.1);
    ramp = nn::RopeRampAttr::get(builder.getContext(),
                                 chance(50) ? nn::RopeRamp::index : nn::RopeRamp::rate);
  }
  auto rope = nn::RopeOp::create(builder, location(), typeOf(dims), value, positionsFor(dims, over),
                                 builder.getI64IntegerAttr(over), builder.getF64FloatAttr(50),
                                 inverse, factor, ramp, from, to, magnitude);
  add(rope, dims);
}

/// Along any dimension, the batch as a rare case.
void RandomStep::accumulate() {
  Var x = use();
  if (x.dims.empty())
    return;
  std::string along = {x.dims[random() % x.dims.size()]}, names = notation(x.dims, "");
  if (hasBatch(along) && chance(80))
    return;
  names = StringRef(names).take_until([](char c) { return c == '-'; }).rtrim().str();
  auto flag = [&] { return chance(40) ? builder.getUnitAttr() : UnitAttr(); };
  Value value = splitRow(x.value, x.dims, along[0]);
  UnitAttr exclusive = flag(), reverse = flag();
  Value sums =
      nn::ScanSumOp::create(builder, location(), typeOf(x.dims), builder.getStringAttr(names),
                            builder.getStringAttr(along), value, exclusive, reverse);
  add(splitRow(sums, x.dims, along[0]), x.dims);
}

void RandomStep::drop() {
  Var x = use();
  FloatAttr rate = builder.getF64FloatAttr(oneOf<double>({0.1, 0.25, 0.5}));
  StringAttr name = builder.getStringAttr("drop." + std::to_string(layers));
  add(DropoutOp::create(builder, location(), x.value.getType(), x.value, rate, name,
                        DenseI64ArrayAttr(), ArrayAttr(), IntegerAttr(), IntegerAttr(),
                        IntegerAttr()),
      x.dims);
}

/// `value` with its dimension `dim` split over some axes, if there are any; other dimensions as
/// propagation finds.
Value RandomStep::split(Value value, StringRef dims, char dim) {
  MeshOp mesh = getMeshOp(step);
  SmallVector<StringAttr> axes;
  const bool everywhere = isShort && chance(30);
  for (StringAttr axis : mesh.getMesh().getAxisNames())
    if (everywhere || chance(axis.getValue() == "tensor" ? 90 : 50))
      axes.push_back(axis);
  if (axes.empty())
    return value;
  SmallVector<ArrayAttr> dimAxes;
  SmallVector<bool> open;
  for (char other : dims) {
    dimAxes.push_back(getAxisArray(builder.getContext(), other == dim ? ArrayRef<StringAttr>(axes)
                                                                      : ArrayRef<StringAttr>()));
    open.push_back(other != dim);
  }
  auto sharding = ShardingAttr::get(builder.getContext(), FlatSymbolRefAttr::get(mesh), dimAxes,
                                    open, ArrayRef<StringAttr>());
  return ConstraintOp::create(builder, location(), value.getType(), value, sharding,
                              DenseI64ArrayAttr(), /*sequence_parallel=*/false, ArrayAttr());
}

void RandomStep::lookUp() {
  std::string ids = "b", table = {newDim(between(1, 6)), newDim(between(1, 5))};
  if (chance(50))
    ids = shuffled(ids + newDim(between(1, 4)));
  Type integer = chance(50) ? Type(builder.getI32Type()) : builder.getI64Type();
  Value positions = input(ids, integer, sizes[table[0]]);
  if (ids.size() == 2 && ids[0] == 'b' && sizes[ids[1]] < sizes[table[0]])
    positions = sinceIn(positions, ids);
  std::string dims = ids + table[1];
  Value rows = parameter(table);
  if (isShort && chance(40))
    rows = scattered(rows, table);
  if (chance(80))
    rows = split(rows, table, table[chance(70) ? 0 : 1]);
  Value found = nn::EmbeddingOp::create(builder, location(), typeOf(dims), rows, positions);
  add(found, dims);
  if (isShort && chance(50)) {
    // The rows' cotangent is a partial sum.
    std::string weight = {table[1], newDim(between(2, 5))}, to = ids + weight.back();
    Value product = nn::EinsumOp::create(builder, location(), typeOf(to),
                                         dims + "," + weight + "->" + to, found, parameter(weight));
    add(split(product, to, to.back()), to);
  }
}

/// Cross-entropy over a dimension of the features, and accuracy.
void RandomStep::classify() {
  Var x = use();
  char classes = 0;
  for (char dim : x.dims)
    if (batchDims.find(dim) == std::string::npos)
      classes = dim;
  if (!classes || x.dims.find('b') == std::string::npos)
    return;
  std::string rows = x.dims;
  rows.erase(rows.find(classes), 1);
  if (rows.find_first_of(batchDims) != rows.find_last_of(batchDims))
    return; // labels have the batch once
  rows = shuffled(rows);
  std::string all = rows + classes;
  Value logits = x.value;
  if (all != x.dims)
    logits = nn::RearrangeOp::create(builder, location(), typeOf(all), notation(x.dims, all),
                                     logits, DictionaryAttr());
  // A bias separates the largest logit from the others.
  std::string dims(1, classes);
  logits = make<arith::AddFOp>(logits, repeat(parameter(dims), dims, all));
  if (isShort && chance(30))
    logits = scattered(logits, all);
  if (chance(80))
    logits = split(logits, all, isShort && chance(30) ? all[random() % all.size()] : classes);
  Type integer = chance(50) ? Type(builder.getI32Type()) : builder.getI64Type();
  Value labels = input(rows, integer, sizes[classes]);
  auto loss = nn::CrossEntropyOp::create(builder, location(), TypeRange{typeOf(rows), typeOf(rows)},
                                         ValueRange{logits, labels});
  add(loss.getLoss(), rows);
  if (chance(30))
    add(loss.getLogSumExp(), rows);
  Value guess = nn::ArgmaxOp::create(builder, location(), typeOf(rows, integer), logits);
  Value right = arith::CmpIOp::create(builder, location(), arith::CmpIPredicate::eq, guess, labels);
  Value hits = arith::UIToFPOp::create(builder, location(), typeOf(rows), right);
  double count = 1;
  for (char dim : rows)
    count *= sizes[dim];
  MetricOp::create(builder, location(), "accuracy" + std::to_string(inputs), total(hits, rows),
                   constant("", count, builder.getF64Type()), /*check=*/IntegerAttr());
}

void RandomStep::cutAndJoin() {
  Var x = use();
  if (x.dims.empty())
    return;
  size_t dim = random() % x.dims.size();
  int64_t size = sizes[x.dims[dim]];
  std::string dims = x.dims;
  switch (between(0, 2)) {
  case 0: {
    int64_t kept = between(1, size);
    dims[dim] = resize(dims[dim], kept);
    return add(nn::SliceOp::create(builder, location(), typeOf(dims), x.value, dim,
                                   between(0, size - kept)),
               dims);
  }
  case 1: {
    int64_t low = between(0, 2);
    dims[dim] = resize(dims[dim], low + size + between(0, 2));
    return add(nn::PadOp::create(builder, location(), typeOf(dims), x.value, dim, low), dims);
  }
  default: {
    Value other = make<math::TanhOp>(x.value);
    dims[dim] = resize(dims[dim], 2 * size);
    return add(
        nn::ConcatOp::create(builder, location(), typeOf(dims), ValueRange{x.value, other}, dim),
        dims);
  }
  }
}
