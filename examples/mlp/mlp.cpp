//===- mlp.cpp - a classifier of three dense layers -----------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

/// weight (in, out) and bias (out): a unit that is gathered as one.
struct Dense {
  Parameter weight, bias;

  Dense(const Scope &scope, int64_t in, int64_t out)
      : weight(scope.parameter("weight", {in, out}, normal(0.02))),
        bias(scope.parameter("bias", {out}, zeros())) {}

  Tensor operator()(Located x) const { return einsum("bi,io->bo", x, weight) + bias; }
};

int main(int argc, char **argv) {
  fsdpc::Driver driver("mlp", "a classifier of three dense layers");
  int64_t in = 64, hidden = 128, classes = 10, batch = 32;
  driver.option("--in", in, "features of a sample");
  driver.option("--hidden", hidden, "width of the two hidden layers");
  driver.option("--classes", classes, "classes to tell apart");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("x", {batch, in});
    Tensor label = model.input("label", {batch}, ElementType::i32);
    Dense fc1(model.unit("fc1"), in, hidden);
    Dense fc2(model.unit("fc2"), hidden, hidden);
    Dense head(model.unit("head"), hidden, classes);

    Tensor logits = head(relu(fc2(relu(fc1(x)))));
    model.loss(mean(crossEntropy(logits, label)));
    model.metric("accuracy", mean(equal(argmax(logits), label)));
  });
}
