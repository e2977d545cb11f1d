//===- sequences.cpp - every operation on sequences in one small model ----===//
//
// No known architecture: queries meet one more key than there are positions (learned, with a value
// of zero), in a window of the last keys, of their own document alone, their scores capped; every
// position has a share of all before it, the width is mixed by two gates whose shares a softmax
// decides, and the table of the tokens also makes the logits.
//
//===----------------------------------------------------------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("sequences", "attention with a learned key, gates, a tied table");
  int64_t classes = 11, length = 6, width = 8, heads = 4, groups = 2, batch = 6;
  driver.option("--classes", classes, "number of different tokens");
  driver.option("--length", length, "tokens of a sample");
  driver.option("--width", width, "features of a token");
  driver.option("--heads", heads, "heads of queries");
  driver.option("--groups", groups, "heads of keys and values; divides those of queries");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    int64_t size = width / heads;
    Tensor tokens = model.input("tokens", {batch, length}, ElementType::i32);
    Tensor next = model.input("next", {batch, length}, ElementType::i32);
    Tensor documents = model.input("documents", {batch, length + 1}, ElementType::i32);
    Parameter table = model.unit("table").parameter("weight", {classes, width}, normal(0.5));
    Scope mix = model.unit("mix");
    Parameter scale = mix.parameter("scale", {width}, ones());
    Parameter bias = mix.parameter("bias", {width}, zeros());
    Parameter query = mix.parameter("query", {width, width}, normal(0.4));
    Parameter key = mix.parameter("key", {width, groups * size}, normal(0.4));
    Parameter value = mix.parameter("value", {width, groups * size}, normal(0.4));
    Parameter rest = mix.parameter("rest", {groups, size}, normal(0.4));
    Scope gates = model.unit("gates");
    Parameter norm = gates.parameter("norm", {width}, ones());
    Parameter in = gates.parameter("in", {width, 2 * width}, normal(0.4));
    Parameter share = gates.parameter("share", {width, 2}, normal(0.4));

    Tensor x = embedding(table, tokens);
    Tensor h = layerNorm(x, scale, bias);
    auto split = [&](const Parameter &weight, int64_t count) {
      return rearrange("b t (h d) -> b h t d", einsum("btc,cf->btf", h, weight), {{"h", count}});
    };
    Tensor keys = concat(
        {repeat("g d -> b g s d", rest, {{"b", batch}, {"s", 1}}), rope(split(key, groups))}, 2);
    Tensor values = pad(split(value, groups), 2, 1, 0);
    Tensor seen = attention(rope(split(query, heads)), keys, values,
                            {/*causal=*/true, /*scale=*/{}, documents, /*window=*/length - 2,
                             /*softcap=*/2});
    x = x + rearrange("b h t d -> b t (h d)", seen);

    x = x + scanSum("b t c", "t", x, {/*exclusive=*/true}) * (0.5 / static_cast<double>(length));

    Tensor n = rmsNorm(x, norm);
    Tensor wide = einsum("btc,cf->btf", n, in);
    Tensor left = slice(wide, 2, 0, width), right = slice(wide, 2, width, width);
    Tensor shares = softmax(einsum("btc,ck->btk", n, share));
    auto shareOf = [&](int64_t gate) {
      return repeat("b t -> b t c", rearrange("b t 1 -> b t", slice(shares, 2, gate, 1)),
                    {{"c", width}});
    };
    x = x + shareOf(0) * gelu(left) * right + shareOf(1) * silu(right) * geluErf(left);

    Tensor logits = einsum("btc,vc->btv", x, table);
    model.loss(mean(crossEntropy(logits, next)));
    model.metric("accuracy", mean(equal(argmax(logits), next)));
  });
}
