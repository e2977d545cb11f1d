//===- lora.h - adapters of low rank on projections -------------*- C++ -*-===//
//
//   models::Lora lora(model, {.rank = 8, .alpha = 16, .on = "q_proj,v_proj"});
//   Parameter weight = lora.base(scope).parameter("weight", {out, in}, normal(0.02));
//   std::optional<LoraAdapter> adapter = lora.adapt(scope, weight, {in}, {out});
//   Tensor y = lora.add(einsum("bsi,oi->bso", x, weight), adapter, x);
//   ...
//   lora.finish();
// A projection y = W x becomes y = W x + alpha / rank * B A x, of which only A and B are trained
// (Hu et al., LoRA, 2021). Names, shapes and first values in files are those of PEFT, whose
// `PeftModel.from_pretrained` loads the exports of a program.
//
//===----------------------------------------------------------------------===//

#ifndef MODELS_LORA_H
#define MODELS_LORA_H

#include "dsl/Operations.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::models {

/// The projections with adapters, and the sizes of the adapters.
struct LoraConfig {
  int64_t rank = 0; ///< 0: no adapters, and all parameters are trained
  double alpha = 0; ///< 0: `rank`, a scale of 1
  /// Names of projections, separated by commas, whole or from a '.' on, with `*` for any part of
  /// them: "q_proj,v_proj", "*.layers.0.*". Empty: those of `Lora`.
  std::string on;

  /// Declares the options --lora, --lora-alpha and --lora-on of a program (fsdpc::Driver). `usual`:
  /// the projections that have adapters without --lora-on, for the help.
  template <class Program> void declare(Program &program, const std::string &usual) {
    program.option("--lora", rank,
                   "rank of adapters (LoRA), which are trained alone; 0, without adapters, trains "
                   "everything",
                   {0, dsl::kMaxSize});
    program.option(
        "--lora-alpha", alpha,
        "the output of adapters is multiplied by this and divided by their rank; default: the "
        "rank",
        {/*least=*/0, /*aboveLeast=*/true});
    program.option(
        "--lora-on", on, "PATTERN[,PATTERN]",
        "projections with adapters: names, or ends of names, '*' being any part of them; "
        "without it " +
            usual);
  }
};

/// The adapter of one projection: A (rank, in), with uniform values between -1/sqrt(in) and
/// 1/sqrt(in), as PEFT draws it (kaiming_uniform_ with a = sqrt(5)), and B (out, rank),
/// zero.
struct LoraAdapter {
  dsl::Parameter down, up; ///< A and B, the dimensions of in and out as the weight has them
  double scale;            ///< alpha / rank

  /// scale * B A x. The last dimensions of `x` are those of in; those before them stay.
  dsl::Tensor operator()(dsl::Located x) const;
};

/// The adapters of a model. Its other parameters are frozen.
class Lora {
public:
  /// `usual` are the projections that have adapters unless `config` lists others. Throws ModelError
  /// for a configuration without a rank.
  Lora(dsl::Model &model, const LoraConfig &config, const std::string &usual = "*");

  /// The scope of parameters that are trained without adapters only.
  dsl::Scope base(const dsl::Scope &scope) const;
  /// The adapter of the projection `scope`, whose weight is declared in it, with the dimensions
  /// `in` and `out` of its operand and result; nothing if it has no adapter. A weight that
  /// `isTransposed` is stored (in, out).
  std::optional<LoraAdapter> adapt(const dsl::Scope &scope, const dsl::Parameter &weight,
                                   const dsl::Shape &in, const dsl::Shape &out,
                                   bool isTransposed = false);
  /// `y` plus the result of the adapter for `x`.
  static dsl::Tensor add(dsl::Located y, const std::optional<LoraAdapter> &adapter, dsl::Located x);
  /// Writes adapter_config.json. After the last projection; throws ModelError for a pattern that
  /// matches none.
  void finish(dsl::Where where = dsl::Where::here());

private:
  dsl::Model &model;
  LoraConfig config;
  std::vector<std::string> patterns, projections, adapted;
  bool isTransposed = false;
};

} // namespace fsdp::models

#endif // MODELS_LORA_H
