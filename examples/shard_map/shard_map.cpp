//===- shard_map.cpp - the networks of JAX's shard_map guide --------------===//
//
// One multi-layer perceptron, written in local terms as the guide writes it: with data parallelism,
// with fully sharded data parallelism, with tensor parallelism, with both, and as a pipeline of
// stages; with products that overlap the communication of their operands or results; and once as a
// model that the compiler shards. All compute the same loss.
//
//===----------------------------------------------------------------------===//

#include "dsl/Manual.h"
#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <map>

using namespace fsdp::dsl;
using Tensors = std::vector<Tensor>;

namespace {

struct Layer {
  Parameter weight, bias;
};

struct Network {
  Model &model;
  Tensor x, y; ///< (samples, features)
  std::vector<Layer> layers;
  int64_t microbatches;

  Tensor automatic() const;
  Tensor data() const;
  Tensor fsdp() const;
  Tensor tensor() const;
  Tensor fsdpTensor() const;
  Tensor fsdpRing() const;
  Tensor tensorRing() const;
  Tensor pipeline() const;

  /// The inputs of a region: x, y, and of each layer weight and bias.
  std::vector<ManualInput> inputs(const std::string &samples, const std::string &weight,
                                  const std::string &bias) const {
    std::vector<ManualInput> list = {{x, samples}, {y, samples}};
    for (const Layer &layer : layers) {
      list.push_back({layer.weight, weight});
      list.push_back({layer.bias, bias});
    }
    return list;
  }
};

Tensor dense(const Tensor &x, const Tensor &weight, const Tensor &bias) {
  return einsum("bi,io->bo", x, weight) + bias;
}

/// The sum of squares of `prediction - y`, in double.
Tensor sumOfSquares(const Tensor &prediction, const Tensor &y) {
  return mean(square(prediction - y)).sum;
}

/// The layers of a region, `apply` each: relu between them.
template <typename Apply> Tensor predict(const Tensors &own, Apply apply) {
  Tensor h = own[0];
  for (size_t i = 2; i < own.size(); i += 2) {
    h = apply(h, own[i], own[i + 1]);
    if (i + 2 < own.size())
      h = relu(h);
  }
  return h;
}

} // namespace

Tensor Network::automatic() const {
  Tensor h = x;
  for (size_t i = 0; i < layers.size(); ++i) {
    h = einsum("bi,io->bo", h, layers[i].weight) + layers[i].bias;
    if (i + 1 < layers.size())
      h = relu(h);
  }
  return sumOfSquares(h, y);
}

// Each rank has its samples and all weights.
Tensor Network::data() const {
  return manual(inputs("fsdp,_", "_,_", "_"), {""}, "fsdp",
                [](const Tensors &own) -> Tensors {
                  return {psum(sumOfSquares(predict(own, dense), own[1]), "fsdp")};
                })
      .front();
}

// Each rank has its samples and its rows of each weight, which it gathers where it uses them.
Tensor Network::fsdp() const {
  return manual(inputs("fsdp,_", "fsdp,_", "fsdp"), {""}, "fsdp",
                [](const Tensors &own) -> Tensors {
                  auto layer = [](const Tensor &h, const Tensor &weight, const Tensor &bias) {
                    return dense(h, pgather(weight, 0, "fsdp"), pgather(bias, 0, "fsdp"));
                  };
                  return {psum(sumOfSquares(predict(own, layer), own[1]), "fsdp")};
                })
      .front();
}

/// A product over features that ranks share: each has terms of all sums, and keeps some.
static Tensor shared(const Tensor &h, const Tensor &weight, const Tensor &bias) {
  return psumScatter(einsum("bi,io->bo", h, weight), 1, "tensor") + bias;
}

// Each rank has its features of all samples, and the rows of the weights that these take.
Tensor Network::tensor() const {
  return manual(inputs("_,tensor", "tensor,_", "tensor"), {""}, "tensor",
                [](const Tensors &own) -> Tensors {
                  return {psum(sumOfSquares(predict(own, shared), own[1]), "tensor")};
                })
      .front();
}

// Both: a rank gathers, over the ranks with other samples, the rows that its features take.
Tensor Network::fsdpTensor() const {
  return manual(inputs("fsdp,tensor", "tensor+fsdp,_", "tensor+fsdp"), {""}, "fsdp+tensor",
                [](const Tensors &own) -> Tensors {
                  auto layer = [](const Tensor &h, const Tensor &weight, const Tensor &bias) {
                    return shared(h, pgather(weight, 0, "fsdp"), pgather(bias, 0, "fsdp"));
                  };
                  return {psum(sumOfSquares(predict(own, layer), own[1]), "fsdp+tensor")};
                })
      .front();
}

/// Block (index - behind) mod n of `input`, which is cut into n blocks along dimension 1; `index`
/// is that of the rank among n.
static Tensor blockOf(Model &model, const Tensor &input, const Tensor &index, int64_t behind,
                      int64_t n) {
  const int64_t width = input.size(1) / n;
  Tensor chosen = slice(input, 1, 0, width);
  for (int64_t block = 1; block < n; ++block) {
    const double rank = static_cast<double>((block + behind) % n);
    Tensor isOwn = equal(index, model.scalar(rank, ElementType::i64));
    chosen = select(repeat("-> a b", isOwn, {{"a", input.size(0)}, {"b", width}}),
                    slice(input, 1, block * width, width), chosen);
  }
  return chosen;
}

// The rows of a weight go round instead of being gathered: each rank multiplies those that it has
// by the columns that they take, while it receives the next ones.
Tensor Network::fsdpRing() const {
  const int64_t n = model.axisSize("fsdp");
  return manual(inputs("fsdp,_", "fsdp,_", "fsdp"), {""}, "fsdp",
                [&](const Tensors &own) -> Tensors {
                  const Tensor index = model.axisIndex("fsdp");
                  auto layer = [&](const Tensor &h, const Tensor &weight, const Tensor &bias) {
                    Tensor rows = weight, product;
                    for (int64_t turn = 0; turn < n; ++turn) {
                      Tensor term = einsum("bi,io->bo", blockOf(model, h, index, turn, n), rows);
                      product = turn == 0 ? term : product + term;
                      if (turn + 1 < n)
                        rows = pshift(rows, 1, /*wraps=*/true, "fsdp");
                    }
                    return product + pgather(bias, 0, "fsdp");
                  };
                  return {psum(sumOfSquares(predict(own, layer), own[1]), "fsdp")};
                })
      .front();
}

// The sums go round instead of being scattered: each rank adds its terms of those that it has, and
// ends with its own.
Tensor Network::tensorRing() const {
  const int64_t n = model.axisSize("tensor");
  return manual(inputs("_,tensor", "tensor,_", "tensor"), {""}, "tensor",
                [&](const Tensors &own) -> Tensors {
                  const Tensor index = model.axisIndex("tensor");
                  auto layer = [&](const Tensor &h, const Tensor &weight, const Tensor &bias) {
                    Tensor sums;
                    for (int64_t turn = 1; turn <= n; ++turn) {
                      Tensor term = einsum("bi,io->bo", h, blockOf(model, weight, index, turn, n));
                      sums = turn == 1 ? term : pshift(sums, 1, /*wraps=*/true, "tensor") + term;
                    }
                    return sums + bias;
                  };
                  return {psum(sumOfSquares(predict(own, layer), own[1]), "tensor")};
                })
      .front();
}

// The layers between the first and the last, which are of one size and stacked, are divided into
// stages. In each round every stage works on another microbatch and sends its activations to
// the next stage.
Tensor Network::pipeline() const {
  const int64_t stages = model.axisSize("stages"), count = microbatches;
  Tensor first = relu(einsum("bi,io->bo", x, layers.front().weight) + layers.front().bias);
  const Layer &stack = layers[1];
  Tensor middle =
      manual({{first, "_,_"}, {stack.weight, "stages,_,_"}, {stack.bias, "stages,_"}}, {"_,_"},
             "stages",
             [&](const Tensors &own) -> Tensors {
               const Tensor stage = model.axisIndex("stages");
               const Tensor isFirst = equal(stage, model.scalar(0, ElementType::i64));
               const Tensor isLast = equal(stage, model.scalar(stages - 1, ElementType::i64));
               const int64_t width = own[0].size(1), rows = own[0].size(0) / count;
               auto like = [&](const Tensor &number) {
                 return repeat("-> b f", number, {{"b", rows}, {"f", width}});
               };
               Tensor received = like(model.scalar(0));
               std::vector<Tensor> finished;
               for (int64_t round = 0; round < count + stages - 1; ++round) {
                 // The first stage begins a microbatch in each round until there is none.
                 Tensor h = round < count ? select(like(isFirst),
                                                   slice(own[0], 0, round * rows, rows), received)
                                          : received;
                 for (int64_t layer = 0; layer < own[1].size(0); ++layer)
                   h = relu(dense(h, rearrange("1 i o -> i o", slice(own[1], 0, layer, 1)),
                                  rearrange("1 o -> o", slice(own[2], 0, layer, 1))));
                 if (round >= stages - 1)
                   finished.push_back(select(like(isLast), h, like(model.scalar(0))));
                 if (round + 1 < count + stages - 1)
                   received = pshift(h, 1, /*wraps=*/false, "stages");
               }
               return {psum(concat(finished, 0), "stages")};
             })
          .front();
  return sumOfSquares(einsum("bi,io->bo", middle, layers.back().weight) + layers.back().bias, y);
}

static const std::map<std::string, Tensor (Network::*)() const> kNetworks = {
    {"automatic", &Network::automatic},
    {"data", &Network::data},
    {"fsdp", &Network::fsdp},
    {"tensor", &Network::tensor},
    {"fsdp-tensor", &Network::fsdpTensor},
    {"fsdp-ring", &Network::fsdpRing},
    {"tensor-ring", &Network::tensorRing},
    {"pipeline", &Network::pipeline}};

int main(int argc, char **argv) {
  fsdpc::Driver driver("shard_map", "the networks of JAX's shard_map guide");
  int64_t in = 784, hidden = 128, blocks = 4, out = 8, batch = 32, microbatches = 4;
  std::string kind = "fsdp";
  driver.option("--in", in, "features of a sample");
  driver.option("--hidden", hidden, "features between two layers");
  driver.option("--blocks", blocks, "layers between the first and the last");
  driver.option("--out", out, "features of a target");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  driver.option("--microbatches", microbatches, "parts of the batch in the pipeline");
  driver.option("--network", kind, "KIND",
                "automatic, data, fsdp, tensor, fsdp-tensor, fsdp-ring, tensor-ring or pipeline");

  return driver.run(argc, argv, [&](Model &model) {
    Network network{
        model, model.input("x", {batch, in}), model.input("y", {batch, out}), {}, microbatches};
    const bool isStacked = kind == "pipeline";
    for (int64_t i = 0; i < blocks + 2; ++i) {
      if (isStacked && i == 1) {
        Scope unit = model.unit("middle");
        network.layers.push_back(
            {unit.parameter("weight", {blocks, hidden, hidden}, normal(0.1)).split("stages,_,_"),
             unit.parameter("bias", {blocks, hidden}, zeros()).split("stages,_")});
      }
      if (isStacked && i > 0 && i <= blocks)
        continue;
      Scope unit = model.unit("fc" + std::to_string(i));
      const int64_t from = i == 0 ? in : hidden, to = i == blocks + 1 ? out : hidden;
      network.layers.push_back({unit.parameter("weight", {from, to}, normal(0.1)),
                                unit.parameter("bias", {to}, zeros())});
    }
    const auto chosen = kNetworks.find(kind);
    if (chosen == kNetworks.end())
      throw OptionError(Where::here(), "--network: got '" + kind +
                                           "', expected automatic, data, fsdp, tensor, "
                                           "fsdp-tensor, fsdp-ring, tensor-ring or pipeline");
    Tensor loss = (network.*chosen->second)();
    model.loss({loss, model.scalar(static_cast<double>(batch), ElementType::f64)});
  });
}
