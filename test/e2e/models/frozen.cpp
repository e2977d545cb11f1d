//===- frozen.cpp - a trained layer behind one that stays as it is --------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("frozen", "a trained layer behind one that stays as it is");
  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("x", {7, 6}), y = model.input("y", {7, 3});
    // A unit that is frozen whole, and one of which a part is.
    Scope base = model.unit("base").frozen(), head = model.unit("head");
    Parameter inner = base.parameter("weight", {6, 5}, normal(0.5));
    Parameter bias = base.scope("shift").parameter("bias", {5}, normal(0.5));
    Parameter scale = head.frozen().parameter("scale", {5}, ones());
    Parameter weight = head.parameter("weight", {5, 3}, normal(0.5));
    Parameter offset = head.parameter("bias", {3}, zeros());
    Tensor hidden = tanh(einsum("bi,io->bo", x, inner) + bias) * scale;
    model.loss(mean(square(einsum("bi,io->bo", hidden, weight) + offset - y)));
  });
}
