//===- GradientCases.cpp - ops on random shapes for gradient tests --------===//

#include "test/unit/dialect/GradientCases.h"
#include "dialect/nn/Notation.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace gradient_test;

std::string gradient_test::tensor(const Shape &shape, StringRef element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element.str() + ">";
}

namespace {

/// A name denotes a dimension; the sizes are drawn once per case.
struct Names {
  std::vector<std::string> names;
  std::map<std::string, int64_t> sizes;

  explicit Names(Random &random, int64_t most) {
    for (int64_t i = random.integer(0, most); i > 0; --i) {
      names.push_back(std::string(1, static_cast<char>('a' + names.size())));
      sizes[names.back()] = random.size();
    }
  }
  std::vector<std::string> subset(Random &random) const {
    std::vector<std::string> chosen;
    for (const std::string &name : names)
      if (random.integer(0, 1))
        chosen.push_back(name);
    random.shuffle(chosen);
    return chosen;
  }
  Shape shape(const std::vector<std::string> &of) const {
    Shape shape;
    for (const std::string &name : of)
      shape.push_back(sizes.at(name));
    return shape;
  }
};

std::string joined(const std::vector<std::string> &names, StringRef separator) {
  return llvm::join(names, separator);
}

/// "lhs -> rhs" in canonical spelling.
std::string arrow(const std::string &from, const std::string &to) {
  return from + (from.empty() ? "->" : " ->") + (to.empty() ? "" : " ") + to;
}

/// An elementwise op of `arith` or `math` whose operands have the given ranges.
Generator elementwise(std::string op, std::vector<Operand> ranges) {
  return [=](Random &random) {
    Case c{op, ranges};
    std::string type = tensor(random.shape());
    for (auto [index, operand] : llvm::enumerate(c.operands)) {
      operand.type = type;
      c.text += std::string(index ? ", %" : " %") + static_cast<char>('a' + index);
    }
    c.text += " : " + type;
    return c;
  };
}

Generator cast(std::string op, StringRef from, StringRef to) {
  return [=, from = from.str(), to = to.str()](Random &random) {
    Shape shape = random.shape();
    return Case{op + " %a : " + tensor(shape, from) + " to " + tensor(shape, to),
                {{tensor(shape, from)}}};
  };
}

Case makeSelect(Random &random) {
  Shape shape = random.shape();
  return {"arith.select %a, %b, %c : " + tensor(shape, "i1") + ", " + tensor(shape),
          {{tensor(shape, "i1"), 0, 2}, {tensor(shape)}, {tensor(shape)}}};
}

Case makeEinsum(Random &random) {
  Names names(random, 5);
  std::vector<std::string> tensors[3];
  for (const std::string &name : names.names) {
    // A name occurs in two or three of the tensors.
    int64_t missing = random.integer(0, 3);
    for (int64_t i = 0; i < 3; ++i)
      if (i != missing)
        tensors[i].push_back(name);
  }
  std::string types[3];
  for (int64_t i = 0; i < 3; ++i) {
    random.shuffle(tensors[i]);
    types[i] = tensor(names.shape(tensors[i]));
  }
  std::string notation =
      joined(tensors[0], "") + "," + joined(tensors[1], "") + "->" + joined(tensors[2], "");
  return {"nn.einsum \"" + notation + "\" %a, %b : (" + types[0] + ", " + types[1] + ") -> " +
              types[2],
          {{types[0]}, {types[1]}}};
}

/// Names cut into groups at random; the shape of what they name.
std::pair<std::string, Shape> grouped(Random &random, const Names &names,
                                      std::vector<std::string> order) {
  std::vector<std::string> dims;
  Shape shape;
  while (!order.empty() || random.integer(0, 4) == 0) {
    size_t count = std::min<size_t>(order.size(), random.integer(0, 3));
    int64_t size = 1;
    std::vector<std::string> group(order.begin(), order.begin() + count);
    order.erase(order.begin(), order.begin() + count);
    for (const std::string &name : group)
      size *= names.sizes.at(name);
    shape.push_back(size);
    dims.push_back(group.empty() ? "1" : count == 1 ? group[0] : "(" + joined(group, " ") + ")");
  }
  return {joined(dims, " "), shape};
}

Case makeRearrange(Random &random) {
  Names names(random, 4);
  auto [from, fromShape] = grouped(random, names, names.names);
  std::vector<std::string> order = names.names;
  random.shuffle(order);
  auto [to, toShape] = grouped(random, names, order);
  std::string notation = arrow(from, to);
  // Adds the sizes that the shapes do not determine, as few as suffice.
  nn::Notation parsed = *nn::Notation::parseEinops(notation, nullptr);
  llvm::StringMap<int64_t> known;
  for (const std::string &name : names.names)
    known[name] = names.sizes[name];
  std::string sizes;
  for (const std::string &name : names.names) {
    llvm::StringMap<int64_t> others(known);
    others.erase(name);
    if (succeeded(parsed.solveSizes({fromShape}, toShape, others, nullptr)))
      known = others;
    else
      sizes += (sizes.empty() ? "" : ", ") + name + " = " + std::to_string(names.sizes[name]);
  }
  if (!sizes.empty())
    sizes = " sizes {" + sizes + "}";
  return {"nn.rearrange \"" + notation + "\" %a" + sizes + " : " + tensor(fromShape) + " -> " +
              tensor(toShape),
          {{tensor(fromShape)}}};
}

Case makeRepeat(Random &random) {
  Names names(random, 4);
  std::vector<std::string> from = names.subset(random), to = names.names;
  random.shuffle(to);
  std::string type = tensor(names.shape(from));
  return {"nn.repeat \"" + arrow(joined(from, " "), joined(to, " ")) + "\" %a : " + type + " -> " +
              tensor(names.shape(to)),
          {{type}}};
}

Generator reduce(std::string kind, StringRef element) {
  return [=, element = element.str()](Random &random) {
    Names names(random, 4);
    std::vector<std::string> from = names.names, to = names.subset(random);
    random.shuffle(from);
    std::string type = tensor(names.shape(from), element);
    return Case{"nn.reduce " + kind + " \"" + arrow(joined(from, " "), joined(to, " ")) +
                    "\" %a : " + type + " -> " + tensor(names.shape(to)),
                {{type}}};
  };
}

Case makeCrossEntropy(Random &random) {
  Shape rows = random.shape(), logits = rows;
  logits.push_back(random.integer(1, 6));
  std::string whole = tensor(logits), row = tensor(rows), labels = tensor(rows, "i32");
  return {"nn.cross_entropy %a, %b : " + whole + ", " + labels + " -> " + row + ", " + row,
          {{whole}, {labels, 0, static_cast<double>(logits.back())}},
          2};
}

/// A shape and one of its dimensions.
std::pair<Shape, int64_t> shapeAndDim(Random &random) {
  Shape shape = random.shape();
  shape.push_back(random.size());
  random.shuffle(shape);
  return {shape, random.integer(0, shape.size() - 1)};
}

/// A part of a dimension of the larger of two shapes.
Generator part(std::string op, std::string start, bool cuts) {
  return [=](Random &random) {
    auto [small, dim] = shapeAndDim(random);
    Shape large = small;
    int64_t low = random.integer(0, 2);
    large[dim] += low + random.integer(0, 2);
    std::string from = tensor(cuts ? large : small), to = tensor(cuts ? small : large);
    return Case{op + " %a dim " + std::to_string(dim) + " " + start + " " + std::to_string(low) +
                    " : " + from + " -> " + to,
                {{from}}};
  };
}

Case makeConcat(Random &random) {
  auto [shape, dim] = shapeAndDim(random);
  Case c{"nn.concat ", {}};
  std::string types;
  int64_t sum = 0;
  for (int64_t i = 0, count = random.integer(1, 3); i < count; ++i) {
    sum += shape[dim] = random.size();
    c.operands.push_back({tensor(shape)});
    c.text += std::string(i ? ", %" : "%") + static_cast<char>('a' + i);
    types += (i ? ", " : "") + tensor(shape);
  }
  shape[dim] = sum;
  c.text += " dim " + std::to_string(dim) + " : (" + types + ") -> " + tensor(shape);
  return c;
}

/// `x` with rows of `width` elements, and the shape of the rows.
std::pair<Shape, Shape> rowShapes(Random &random, int64_t width) {
  Shape rows = random.shape(), x = rows;
  x.push_back(width);
  return {x, rows};
}

Case makeSoftmax(Random &random) {
  std::string x = tensor(rowShapes(random, random.size()).first);
  return {"nn.softmax %a : " + x, {{x}}};
}

// The eps is large enough to keep second derivatives, which finite differences leave out, small.
Case makeLayerNorm(Random &random) {
  int64_t width = random.size();
  auto [x, rows] = rowShapes(random, width);
  std::string row = tensor({width});
  return {"nn.layer_norm %a, %b, %c eps 0.5 : " + tensor(x) + ", " + row + " -> " + tensor(rows),
          {{tensor(x)}, {row}, {row}},
          3,
          1};
}

Case makeRmsNorm(Random &random) {
  int64_t width = random.size();
  auto [x, rows] = rowShapes(random, width);
  std::string row = tensor({width});
  return {"nn.rms_norm %a, %b eps 0.5 : " + tensor(x) + ", " + row + " -> " + tensor(rows),
          {{tensor(x)}, {row}},
          2,
          1};
}

Case makeAttention(Random &random) {
  int64_t batch = random.integer(1, 2), groups = random.integer(1, 2),
          heads = groups * random.integer(1, 2), queries = random.integer(0, 3),
          keys = std::max<int64_t>(queries + random.integer(0, 2), 1), width = random.integer(1, 3);
  bool causal = random.integer(0, 1);
  if (!causal)
    keys = random.integer(1, 4);
  // Any order, and one operand or three.
  bool packed = random.integer(0, 1);
  if (packed)
    groups = heads, keys = queries = std::max<int64_t>(queries, 1);
  std::vector<std::string> letters = {"b", "h", "t"};
  if (packed)
    letters.push_back("n");
  random.shuffle(letters);
  std::string order = joined(letters, " ") + " d";
  auto typeOf = [&](int64_t heads, int64_t positions, bool isInput) {
    Shape shape;
    for (const std::string &letter : letters)
      if (letter != "n" || isInput)
        shape.push_back(letter == "b"   ? batch
                        : letter == "h" ? heads
                        : letter == "t" ? positions
                                        : 3);
    shape.push_back(width);
    return tensor(shape);
  };
  std::string q = typeOf(heads, queries, true), k = typeOf(groups, keys, true);
  std::vector<Operand> inputs = {{q}};
  if (!packed)
    inputs.resize(3, {k});
  std::string types = packed ? q : q + ", " + k + ", " + k, names = packed ? "%a" : "%a, %b, %c";
  std::string options = causal ? " causal" : "";
  if (causal && random.integer(0, 1))
    options += " window " + std::to_string(random.integer(1, keys));
  if (random.integer(0, 2) == 0)
    options += " softcap 0.8";
  if (random.integer(0, 1)) {
    std::string bias = tensor({random.integer(0, 1) ? heads : 1, queries, keys});
    inputs.push_back({bias});
    types += ", " + bias;
    names += packed ? ", %b" : ", %d";
    options += " bias";
  }
  if (keys >= queries && random.integer(0, 1)) {
    std::string ids = tensor({batch, keys}, "i32");
    inputs.push_back({ids, 0, 2});
    types += ", " + ids;
    names += std::string(", %") + static_cast<char>('a' + inputs.size() - 1);
    options += " documents";
  }
  return {"nn.attention \"" + order + "\" " + names + " scale 0.7" + options + " : (" + types +
              ") -> (" + typeOf(heads, queries, false) + ", " + tensor({batch, heads, queries}) +
              ")",
          inputs, 2, 1};
}

Case makeRope(Random &random) {
  Shape x = random.shape();
  x.push_back(random.size());
  int64_t dim = random.integer(0, static_cast<int64_t>(x.size()) - 1);
  x.push_back(2 * random.integer(0, 3));
  const char *scalings[] = {"", " factor 4.0", " factor 2.0 ramp index from 1.5 to 0.5",
                            " factor 8.0 ramp rate from 0.01 to 0.5 magnitude 1.25"};
  std::vector<Operand> operands = {{tensor(x)}};
  std::string positions;
  if (dim > 0 && random.integer(0, 1)) {
    const std::string type = tensor({x.front(), x[dim]}, "i32");
    positions = "at %b : " + type + " ";
    operands.push_back({type, -50, 50});
  }
  return {"nn.rope %a " + positions + "dim " + std::to_string(dim) + " theta 100.0" +
              scalings[random.integer(0, 3)] + std::string(random.integer(0, 1) ? " inverse" : "") +
              " : " + tensor(x),
          operands};
}

Case makeScanSum(Random &random) {
  Names names(random, 3);
  names.names.push_back("t");
  names.sizes["t"] = random.size();
  random.shuffle(names.names);
  std::string x = tensor(names.shape(names.names));
  return {"nn.scan_sum \"" + joined(names.names, " ") + "\" along \"t\" %a" +
              (random.integer(0, 1) ? " exclusive" : "") +
              (random.integer(0, 1) ? " reverse" : "") + " : " + x,
          {{x}}};
}

Case makeDropout(Random &random) {
  std::string x = tensor(random.shape());
  return {"fsdp.dropout %a rate 0.4 name \"mask\" : " + x, {{x}}};
}

Case makeEmbedding(Random &random) {
  int64_t count = random.integer(1, 4), width = random.size();
  Shape ids = random.shape(), rows = ids;
  rows.push_back(width);
  std::string table = tensor({count, width}), id = tensor(ids, "i32");
  return {"nn.embedding %a, %b : " + table + ", " + id + " -> " + tensor(rows),
          {{table}, {id, 0, static_cast<double>(count)}}};
}

Case makeConstraint(Random &random) {
  std::string type = tensor({random.size(), 3});
  return {"fsdp.constraint %a <@mesh, [{\"fsdp\"}, {} ]> : " + type, {{type}}};
}

} // namespace

/// The cases of each op.
const std::vector<std::pair<std::string, Generator>> &gradient_test::cases() {
  const Operand any, positive{"", 0.3, 3}, nonzero{"", 0.4, 2.5, true};
  static const std::vector<std::pair<std::string, Generator>> cases = {
      {"nn.einsum", makeEinsum},
      {"nn.rearrange", makeRearrange},
      {"nn.repeat", makeRepeat},
      {"nn.reduce", reduce("sum", "f64")},
      {"nn.reduce", reduce("mean", "f64")},
      {"nn.reduce", reduce("max", "f64")},
      {"nn.reduce", reduce("sum", "f32")},
      {"nn.reduce", reduce("mean", "f32")},
      {"nn.reduce", reduce("max", "f32")},
      {"nn.cross_entropy", makeCrossEntropy},
      {"nn.slice", part("nn.slice", "start", true)},
      {"nn.pad", part("nn.pad", "low", false)},
      {"nn.concat", makeConcat},
      {"nn.softmax", makeSoftmax},
      {"nn.layer_norm", makeLayerNorm},
      {"nn.rms_norm", makeRmsNorm},
      {"nn.attention", makeAttention},
      {"nn.rope", makeRope},
      {"nn.scan_sum", makeScanSum},
      {"nn.embedding", makeEmbedding},
      {"fsdp.dropout", makeDropout},
      {"fsdp.constraint", makeConstraint},
      {"arith.addf", elementwise("arith.addf", {any, any})},
      {"arith.subf", elementwise("arith.subf", {any, any})},
      {"arith.mulf", elementwise("arith.mulf", {any, any})},
      {"arith.divf", elementwise("arith.divf", {any, nonzero})},
      {"arith.negf", elementwise("arith.negf", {any})},
      {"arith.maximumf", elementwise("arith.maximumf", {any, any})},
      {"arith.minimumf", elementwise("arith.minimumf", {any, any})},
      {"arith.select", makeSelect},
      {"arith.extf", cast("arith.extf", "f32", "f64")},
      {"arith.truncf", cast("arith.truncf", "f64", "f32")},
      {"math.exp", elementwise("math.exp", {any})},
      {"math.log", elementwise("math.log", {positive})},
      {"math.log1p", elementwise("math.log1p", {{"", -0.6, 2}})},
      {"math.sqrt", elementwise("math.sqrt", {positive})},
      {"math.rsqrt", elementwise("math.rsqrt", {positive})},
      {"math.tanh", elementwise("math.tanh", {any})},
      {"math.erf", elementwise("math.erf", {any})},
      {"math.absf", elementwise("math.absf", {nonzero})},
      {"math.sin", elementwise("math.sin", {any})},
      {"math.cos", elementwise("math.cos", {any})},
      {"math.powf", elementwise("math.powf", {positive, any})},
      {"math.fma", elementwise("math.fma", {any, any, any})},
  };
  return cases;
}
