//===- mistakes.cpp - a model with a mistake that passes find -------------===//
//
// `--mistake=N` makes one that no operation detects, so that the compiler finds it later:
// test/tools/model-words.test has the messages, with line numbers.
//
//===----------------------------------------------------------------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("mistakes", "a wrong model");
  int64_t mistake = 0;
  driver.option("--mistake", mistake, "which one");
  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("x", {8, 6});
    Parameter weight = model.unit("fc").parameter("weight", {6, 6}, normal(0.1));
    Tensor y = einsum("bi,io->bo", x, weight);
    if (mistake == 1)
      return; // no loss
    if (mistake == 2)
      model.unit("spare").parameter("weight", {6}, zeros());
    if (mistake == 3)
      y = softmax(rearrange("b o -> o b", y)); // over samples
    if (mistake == 4)
      y = einsum("bi,io->bo", y, weight.split("_,tensor"));
    if (mistake == 5)
      model.metric("restart", mean(y));
    if (mistake == 6)
      y = gelu(y);
    if (mistake == 7) // called like an op, which messages must leave alone
      model.unit("nn").parameter("softmax", {6}, zeros());
    model.loss(mean(square(y)));
  });
}
