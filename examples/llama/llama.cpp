//===- llama.cpp - Llama, parameters named as on Hugging Face -------------===//

#include "models/llama.h"
#include "models/sizes.h"
#include "tools/fsdpc/Driver.h"

using namespace fsdp::dsl;

int main(int argc, char **argv) {
  fsdpc::Driver driver("llama", "Llama, Mistral, Qwen2 and Qwen3");
  fsdp::models::LlamaConfig sizes;
  int64_t context = 2048, batch = 8;
  driver.blocks("--layers", sizes.layers, "blocks");
  driver.option("--width", sizes.width, "width of the residual stream");
  driver.option("--heads", sizes.heads, "heads of the queries");
  driver.option("--kv-heads", sizes.groups,
                "heads of keys and values; without it as many as of queries");
  driver.option("--head-dim", sizes.head, "width of a head; without it --width divided by --heads");
  driver.option("--ffn", sizes.ffn, "width of the feed-forward parts");
  driver.option("--rope-theta", sizes.theta, "base of the angles of rope",
                {/*least=*/0, /*aboveLeast=*/true});
  driver.option("--norm-eps", sizes.eps, "added to the mean square of each norm",
                {/*least=*/0, /*aboveLeast=*/true});
  driver.flag("--tie", sizes.tied, "the weight of the head is that of the embedding");
  driver.option("--context", context, "tokens of a sample");
  driver.option("--vocab", sizes.vocab, "different tokens");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  sizes.packing.declare(driver);
  sizes.lora.declare(driver, "q_proj,v_proj");
  driver.from("config.json", [&](ModelConfig &config) {
    context = sizes.describe(config, context, /*mayShorten=*/!driver.isGiven("--context"));
  });

  return driver.run(argc, argv, [&](Model &model) {
    fsdp::models::LlamaConfig own = sizes; // `plan` and `--fit` describe models of other sizes
    own.complete();
    fsdp::models::checkTensor({{"--batch", batch}, {"--context", context}, {"--vocab", own.vocab}});
    fsdp::models::checkTensor({{"--batch", batch}, {"--context", context}, {"--width", own.width}});
    fsdp::models::checkTensor({{"--batch", batch}, {"--context", context}, {"--ffn", own.ffn}});
    Tensor tokens = model.tokens("tokens", {batch, context}, own.vocab);
    Tensor targets = model.targets("targets", {batch, context}, own.vocab);
    fsdp::models::Llama llama(model, own);
    own.packing.addLoss(model, crossEntropy(llama(tokens), targets), tokens);
    ModelConfig config("config.json");
    own.describe(config, context);
    model.config(config);
  });
}
