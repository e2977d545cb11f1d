//===- linear.cpp - linear regression: one layer, mean squared error ------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("linear", "linear regression: one layer, mean squared error");
  int64_t in = 8, out = 4, batch = 16;
  driver.option("--in", in, "features of a sample");
  driver.option("--out", out, "targets of a sample");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("x", {batch, in});
    Tensor y = model.input("y", {batch, out});
    Scope layer = model.unit("layer", "");
    Parameter kernel = layer.parameter("kernel", {in, out}, normal(0.02));
    Parameter bias = layer.parameter("bias", {out}, zeros());

    Tensor prediction = einsum("bi,io->bo", x, kernel) + bias;
    model.loss(mean(square(prediction - y)));
  });
}
