//===- vit.cpp - a vision transformer for small images --------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <cmath>

using namespace fsdp::dsl;

/// y = x w + b along the last dimension.
struct Dense {
  Parameter weight, bias;

  Dense(const Scope &scope, int64_t in, int64_t out, double deviation = 0.02)
      : weight(scope.parameter("weight", {in, out}, normal(deviation))),
        bias(scope.parameter("bias", {out}, zeros())) {}

  Tensor operator()(Located x) const { return einsum("bti,io->bto", x, weight) + bias; }
};

struct Norm {
  Parameter weight, bias;

  Norm(const Scope &scope, int64_t width)
      : weight(scope.parameter("weight", {width}, ones())),
        bias(scope.parameter("bias", {width}, zeros())) {}

  Tensor operator()(Located x) const { return layerNorm(x, weight, bias); }
};

/// Attention between all patches, then two dense layers; each is added to its input.
struct Block {
  Norm norm1, norm2;
  Parameter qkv, out;
  Dense up, down;

  Block(const Scope &scope, int64_t width, int64_t heads, double residual)
      : norm1(scope.scope("norm1"), width), norm2(scope.scope("norm2"), width),
        qkv(scope.parameter("qkv", {width, 3, heads, width / heads}, normal(0.02))),
        out(scope.parameter("out", {heads, width / heads, width}, normal(residual))),
        up(scope.scope("up"), width, 4 * width),
        down(scope.scope("down"), 4 * width, width, residual) {}

  Tensor operator()(Tensor x) const {
    AttentionOptions everyPatch;
    everyPatch.causal = false;
    Tensor mixed = attention("b t n h d", einsum("btw,wnhd->btnhd", norm1(x), qkv), everyPatch);
    x = x + einsum("bthd,hdw->btw", mixed, out);
    return x + down(gelu(up(norm2(x))));
  }
};

int main(int argc, char **argv) {
  fsdpc::Driver driver("vit", "a vision transformer");
  int64_t side = 8, patch = 2, classes = 10, layers = 4, width = 64, heads = 4, batch = 50;
  driver.option("--side", side, "pixels of an image's side");
  driver.option("--patch", patch, "pixels of a patch's side");
  driver.option("--classes", classes, "classes to tell apart");
  driver.blocks("--layers", layers, "blocks");
  driver.option("--width", width, "width of the residual stream");
  driver.option("--heads", heads, "heads of each attention");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    if (side % patch != 0)
      throw ModelError(Where::here(), "got --patch=" + std::to_string(patch) +
                                          ", expected a divisor of --side=" + std::to_string(side));
    const int64_t across = side / patch, patches = across * across;
    Tensor image = model.input("x", {batch, side * side});
    Tensor label = model.input("label", {batch}, ElementType::i32);

    // Units, whose parameters are gathered together: the embedding, each block, the head.
    Scope stem = model.unit("embed");
    Dense embed(stem, patch * patch, width);
    Parameter position = stem.parameter("position", {patches, width}, normal(0.02));
    Tensor cut = rearrange("b (h p w q) -> b (h w) (p q)", image,
                           {{"h", across}, {"w", across}, {"p", patch}});
    Tensor x = embed(cut) + position;

    const double residual = 0.02 / std::sqrt(2.0 * layers);
    for (int64_t layer = 0; layer < layers; ++layer)
      x = Block(model.unit("block" + std::to_string(layer)), width, heads, residual)(x);

    Scope end = model.unit("head");
    Norm norm(end.scope("norm"), width);
    Parameter head = end.parameter("weight", {width, classes}, normal(0.02));
    Tensor logits = einsum("bw,wc->bc", reduceMean("b t w -> b w", norm(x)), head);
    model.loss(mean(crossEntropy(logits, label)));
    model.metric("accuracy", mean(equal(argmax(logits), label)));
  });
}
