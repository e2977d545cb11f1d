//===- gpt2.cpp - GPT-2, parameters named as on Hugging Face --------------===//

#include "models/gpt2.h"
#include "models/sizes.h"
#include "tools/fsdpc/Driver.h"
#include <optional>

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("gpt2", "GPT-2");
  fsdp::models::GPT2Config sizes;
  int64_t context = sizes.positions, batch = 8;
  bool isRead = false;
  driver.blocks("--layers", sizes.layers, "blocks");
  driver.option("--width", sizes.width, "width of the residual stream");
  driver.option("--heads", sizes.heads, "heads of each attention");
  driver.option("--context", context, "tokens of a sample");
  driver.option("--vocab", sizes.vocab, "different tokens");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  sizes.packing.declare(driver);
  driver.option("--dropout", sizes.drop,
                "share of elements dropped before each sum of the residual stream",
                {/*least=*/0, /*aboveLeast=*/false, /*limit=*/1});
  sizes.lora.declare(driver, "c_attn");
  driver.from("config.json", [&](ModelConfig &config) {
    const bool given = driver.isGiven("--context");
    sizes.describe(config, given ? std::optional(context) : std::nullopt);
    context = given ? context : sizes.positions;
    isRead = true;
  });

  return driver.run(argc, argv, [&](Model &model) {
    fsdp::models::GPT2Config own = sizes; // `plan` and `--fit` describe models of other sizes
    if (!isRead)
      own.positions = context;
    own.check();
    fsdp::models::checkTensor({{"--batch", batch}, {"--context", context}, {"--vocab", own.vocab}});
    fsdp::models::checkTensor(
        {{"--batch", batch}, {"--context", context}, {"4 * --width", 4 * own.width}});
    Tensor tokens = model.tokens("tokens", {batch, context}, own.vocab);
    Tensor targets = model.targets("targets", {batch, context}, own.vocab);
    fsdp::models::GPT2 gpt2(model, own);
    own.packing.addLoss(model, crossEntropy(gpt2(tokens), targets), tokens);
    ModelConfig config("config.json");
    own.describe(config, context);
    model.config(config);
  });
}
