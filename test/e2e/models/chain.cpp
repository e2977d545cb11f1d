//===- chain.cpp - a deep model, for measuring how the compiler scales ----===//
//
// Residual blocks, one unit each, with the parameters and operations of a gated transformer
// block but no attention: measures the compiler's cost per layer, for any number of layers.
//
//===----------------------------------------------------------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <string>

using namespace fsdp::dsl;

namespace {
struct Dimensions {
  int64_t layers = 4, width = 8, hidden = 16, batch = 6;
};
} // namespace

static Tensor product(const Tensor &x, const Parameter &weight) {
  return einsum("bi,io->bo", x, weight);
}

/// `x` (batch, width) scaled to unit mean square of each sample, times `scale` (width).
static Tensor normalize(const Tensor &x, const Parameter &scale) {
  Sizes width = {{"w", x.size(1)}};
  Tensor meanSquare = reduceMean("b w -> b", square(x));
  return x * repeat("b -> b w", rsqrt(meanSquare + 1e-5), width) * scale;
}

/// One block: nine parameters, two residual branches.
static Tensor block(Scope unit, const Tensor &input, const Dimensions &shape) {
  int64_t width = shape.width, hidden = shape.hidden;
  auto matrix = [&](const char *name, int64_t in, int64_t out) {
    return unit.parameter(name, {in, out}, normal(0.1));
  };
  Parameter mixScale = unit.parameter("mix_norm", {width}, ones());
  Parameter query = matrix("query", width, width), key = matrix("key", width, width);
  Parameter value = matrix("value", width, width), project = matrix("project", width, width);
  Parameter feedScale = unit.parameter("feed_norm", {width}, ones());
  Parameter gate = matrix("gate", width, hidden), up = matrix("up", width, hidden);
  Parameter down = matrix("down", hidden, width);

  Tensor x = normalize(input, mixScale);
  Tensor mixed = tanh(product(x, query) * product(x, key)) * product(x, value);
  Tensor middle = product(mixed, project) + input;
  Tensor y = normalize(middle, feedScale);
  return product(tanh(product(y, gate)) * product(y, up), down) + middle;
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("chain", "a chain of residual blocks of nine parameters");
  Dimensions shape;
  driver.option("--layers", shape.layers, "number of blocks");
  driver.option("--width", shape.width, "features of a sample");
  driver.option("--hidden", shape.hidden, "features inside the second branch of a block");
  driver.option("--batch", shape.batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    Tensor input = model.input("x", {shape.batch, shape.width});
    Tensor target = model.input("y", {shape.batch, shape.width});
    Parameter first =
        model.unit("first").parameter("weight", {shape.width, shape.width}, normal(0.3));
    Tensor x = product(input, first);
    for (int64_t i = 0; i < shape.layers; ++i)
      x = block(model.unit("h." + std::to_string(i)), x, shape);
    Scope head = model.unit("head");
    Parameter scale = head.parameter("norm", {shape.width}, ones());
    Parameter last = head.parameter("weight", {shape.width, shape.width}, normal(0.3));
    Tensor error = product(normalize(x, scale), last) - target;
    model.loss(mean(reduceMean("b w -> b", square(error))));
  });
}
