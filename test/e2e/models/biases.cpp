//===- biases.cpp - attention with biases of scores in small models -------===//
//
// Language models whose layers are attention and a projection around it, by what the bias is.
// alibi: ALiBi alone. relative: T5's relative positions, learned, one table for the first and the
// last layer (scale 1 in the first, as T5 has it), in between a learned bias for all heads; scores
// are capped from the second layer on. mask: in the first layer -infinity for some keys, and for
// all keys of the first query; in the second -1e9 for the first two keys, as a mask of padding has,
// which are all that the first two queries see.
//
//===----------------------------------------------------------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

#include <limits>
#include <utility>
#include <vector>

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("biases", "attention with a bias of its scores");
  std::string kind = "alibi";
  int64_t classes = 13, length = 10, width = 24, heads = 6, groups = 3, buckets = 8, batch = 6;
  driver.option("--bias", kind, "KIND", "alibi, relative or mask");
  driver.option("--classes", classes, "number of different tokens");
  driver.option("--length", length, "tokens of a sample");
  driver.option("--width", width, "features of a token");
  driver.option("--heads", heads, "heads of queries");
  driver.option("--groups", groups, "heads of keys and values in the second layer");
  driver.option("--buckets", buckets, "buckets of distances");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    const int64_t size = width / heads;
    const bool learned = kind == "relative";
    Tensor tokens = model.input("tokens", {batch, length}, ElementType::i32);
    Tensor next = model.input("next", {batch, length}, ElementType::i32);
    Parameter table = model.unit("table").parameter("weight", {classes, width}, normal(0.5));
    std::vector<Tensor> biases; // of the layers
    if (learned) {
      Scope positions = model.unit("positions");
      Tensor relative = relativeBias(positions.parameter("relative", {buckets, heads}, normal(0.5)),
                                     length, length, {/*causal=*/true, /*maxDistance=*/8});
      Parameter places = positions.parameter("places", {1, length, length}, normal(0.5));
      biases = {relative, Located(places).tensor, relative};
    } else if (kind == "mask") {
      auto full = [&](double value) {
        return repeat("-> t s", model.scalar(value), {{"t", length}, {"s", length}});
      };
      Tensor at = scanSum("t", "t", repeat("-> t", model.scalar(1), {{"t", length}}));
      Tensor key = repeat("s -> t s", at, {{"t", length}});
      Tensor hidden = equal(repeat("t -> t s", at, {{"s", length}}), full(1)) +
                      equal(key, full(5)) + equal(key, full(8));
      Tensor padding = greater(full(3), key);
      const double none = -std::numeric_limits<double>::infinity();
      for (const auto &[masked, value] :
           {std::pair(greater(hidden, full(0)), none), std::pair(padding, -1e9)})
        biases.push_back(rearrange("t s -> 1 t s", select(masked, full(value), full(0))));
    } else {
      biases.assign(2, alibi(model, heads, length, length));
    }
    Tensor x = embedding(table, tokens);
    for (size_t layer = 0; layer < biases.size(); ++layer) {
      Scope unit = model.unit("layer" + std::to_string(layer));
      Parameter out = unit.parameter("out", {heads, size, width}, normal(0.3));
      Tensor h = rmsNorm(x, unit.parameter("norm", {width}, ones()));
      Tensor seen;
      if (layer == 0) {
        Parameter in = unit.parameter("in", {width, 3, heads, size}, normal(0.3));
        AttentionOptions options;
        options.bias = biases[layer];
        if (learned)
          options.scale = 1;
        seen = attention("b t n h d", einsum("btc,cnhd->btnhd", h, in), options);
      } else {
        Parameter q = unit.parameter("q", {width, heads, size}, normal(0.3));
        Parameter k = unit.parameter("k", {width, groups, size}, normal(0.3));
        Parameter v = unit.parameter("v", {width, groups, size}, normal(0.3));
        AttentionOptions options;
        options.bias = biases[layer];
        if (learned)
          options.softcap = 2;
        seen = attention("b t h d", einsum("btc,chd->bthd", h, q), einsum("btc,chd->bthd", h, k),
                         einsum("btc,chd->bthd", h, v), options);
      }
      x = x + einsum("bthd,hdc->btc", seen, out);
    }
    model.loss(mean(crossEntropy(einsum("btc,vc->btv", x, table), next)));
  });
}
