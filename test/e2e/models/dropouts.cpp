//===- dropouts.cpp - draws on inputs, on hidden features, with the batch last ----===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("dropouts", "a regression with dropout on inputs and hidden features");
  int64_t width = 6, hidden = 16, batch = 10;
  double rate = 0.25;
  driver.option("--width", width, "features of a sample");
  driver.option("--hidden", hidden, "hidden features");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  driver.option("--rate", rate, "share of elements that are dropped");

  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("left", {batch, width});
    Tensor target = model.input("target", {batch, width});
    Parameter in = model.unit("in").parameter("weight", {width, hidden}, normal(0.4));
    Parameter out = model.unit("out").parameter("weight", {hidden, width}, normal(0.4));

    Tensor h = relu(einsum("bi,ih->hb", dropout(x, rate / 2), in));
    // Twice in one scope: each has separate draws.
    h = dropout(dropout(h, rate), rate);
    Tensor y = einsum("hb,ho->bo", h, out);
    model.loss(mean(square(dropout(y, rate, "last") - target)));
  });
}
