//===- prints.cpp - a residual network that reports its values ------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

namespace {

/// x + up(gelu(tanh(down(x)) * gate(x))), whose values `report` is given as they are computed. In
/// 16 bits the tanh stays unrounded in the kernel that ends with gelu, be it printed or not.
struct Block {
  Parameter down, gate, up;

  Block(const Scope &scope, int64_t width)
      : down(scope.parameter("down", {width, 2 * width}, normal(0.3))),
        gate(scope.parameter("gate", {width, 2 * width}, normal(0.3))),
        up(scope.parameter("up", {2 * width, width}, normal(0.3))) {}

  template <typename Report> Tensor operator()(const Tensor &x, Report report) const {
    Tensor bounded = tanh(einsum("btw,wh->bth", x, down));
    report("bounded", bounded);
    Tensor hidden = gelu(bounded * einsum("btw,wh->bth", x, gate));
    report("hidden", hidden);
    report("up", up);
    Tensor product = einsum("bth,hw->btw", hidden, up);
    report("product", product);
    return x + product;
  }
};

} // namespace

int main(int argc, char **argv) {
  fsdpc::Driver driver("prints", "a residual network that reports its values");
  int64_t batch = 10, positions = 3, width = 7, blocks = 4, prints = 0, checks = 0, regions = 0;
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  driver.option("--width", width, "numbers of a position");
  driver.option("--prints", prints, "1: with prints");
  driver.option("--checks", checks, "1: with checks");
  driver.option("--regions", regions, "1: with blocks in checkpoints");
  return driver.run(argc, argv, [&](Model &model) {
    Tensor x = model.input("x", {batch, positions, width});
    Tensor label = model.input("label", {batch}, ElementType::i32);
    if (prints) {
      print(x, "x");
      print(label, "label");
    }
    if (checks)
      check(x, "x");
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string name = "block" + std::to_string(i);
      Block block(model.unit(name), width);
      auto report = [&](const std::string &what, Located value) {
        if (prints)
          print(value, name + "." + what);
        if (checks && what == "hidden") {
          check(value, name + ".hidden");
          check(tanh(value) * 1e36 * value, name + ".large");
        }
      };
      auto whole = [&] { return block(x, report); };
      x = regions ? model.checkpoint(whole) : whole();
    }
    Parameter head = model.unit("head").parameter("weight", {width, 5}, normal(0.3));
    Tensor logits = einsum("bw,wc->bc", reduceMean("b t w -> b w", x), head);
    if (prints) {
      print(logits, "logits");
      print(equal(argmax(logits), label), "hits");
    }
    Average loss = mean(crossEntropy(logits, label));
    if (prints)
      print(loss.sum, "loss");
    model.loss(loss);
  });
}
