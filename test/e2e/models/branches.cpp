//===- branches.cpp - a model unlike those of examples/ -------------------===//
//
// Two branches share a tied parameter, one with the batch first, one with it last; they meet with
// the batch last and are normalized, by statistics over the batch or of each sample; samples have
// weights. No part of the compiler was made for it, and it passes the whole line.
//
//===----------------------------------------------------------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

/// Zero mean and unit variance of each sample; `x` is (channel, batch).
static Tensor normalizeSamples(const Tensor &x) {
  Sizes channels = {{"c", x.size(0)}};
  Tensor centred = x - repeat("b -> c b", reduceMean("c b -> b", x), channels);
  Tensor variance = reduceMean("c b -> b", square(centred));
  return centred * repeat("b -> c b", rsqrt(variance + 1e-3), channels);
}

/// Zero mean and unit variance of each channel over the batch.
static Tensor normalizeBatch(const Tensor &x) {
  Sizes batch = {{"b", x.size(1)}};
  Tensor centred = x - repeat("c -> c b", reduceMean("c b -> c", x), batch);
  Tensor variance = reduceMean("c b -> c", square(centred));
  return centred * repeat("c -> c b", rsqrt(variance + 1e-3), batch);
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("branches", "two branches with a tied parameter, joined over the batch");
  int64_t width = 6, heads = 2, batch = 10;
  bool perSample = false;
  driver.option("--width", width, "features of a sample");
  driver.option("--heads", heads, "groups of hidden features");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  driver.flag("--per-sample", perSample, "normalize each sample, not over the batch");

  return driver.run(argc, argv, [&](Model &model) {
    Tensor left = model.input("left", {batch, width});
    Tensor right = model.input("right", {width, batch}, ElementType::f32, /*sampleDim=*/1);
    Tensor target = model.input("target", {batch, width});
    Tensor importance = model.input("importance", {batch});
    // Its file has one matrix; in compute the heads are a separate dimension.
    Parameter tied = model.unit("shared").parameter("weight", {width, heads, width / heads},
                                                    normal(0.4), {width, width / heads * heads});
    Scope mix = model.unit("mix");
    Parameter scale = mix.parameter("scale", {width / heads * heads}, ones());
    Parameter shift = mix.scope("output").parameter("shift", {width / heads * heads}, uniform(0.1));

    Tensor first = tanh(einsum("bi,ihd->bhd", left, tied));
    Tensor second = exp(-square(einsum("ib,ihd->hdb", right, tied)));
    Tensor joined =
        rearrange("b h d -> (h d) b", first) + rearrange("h d b -> (h d) b", second) * 0.5;
    Tensor normalized = perSample ? normalizeSamples(joined) : normalizeBatch(joined);
    Tensor output = rearrange("c b -> b c", normalized) * scale + shift;

    Tensor error = reduceMean("b c -> b", square(output - target));
    model.loss(weightedMean(error, importance));
    model.metric("distance", mean(abs(output - target)));
    model.metric("largest", mean(reduceMax("b c -> b", output)));
  });
}
