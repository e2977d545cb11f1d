// A regression on a block of the Llama of --from.

#include <fsdpc/models/llama.h>
#include <fsdpc/tools/fsdpc/Driver.h>

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("probe", "a block and a product");
  fsdp::models::LlamaConfig sizes;
  driver.from("config.json", [&](ModelConfig &config) { sizes.describe(config, 8); });
  return driver.run(argc, argv, [&](Model &model) {
    sizes.complete();
    Tensor x = model.input("x", {4, 8, sizes.width}), y = model.input("y", {4, 8});
    fsdp::models::LlamaBlock block(model.unit("block"), sizes);
    Parameter weight = model.unit("head").parameter("weight", {sizes.width}, normal(0.02));
    model.loss(mean(square(einsum("btd,d->bt", block(x), weight) - y)));
  });
}
