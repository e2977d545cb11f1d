//===- packing.h - documents in rows of tokens, and what counts -*- C++ -*-===//
//
//   models::PackingConfig packing;
//   packing.declare(driver);
//   ...
//   packing.addLoss(model, crossEntropy(logits, targets), tokens);
// A row of tokens contains several documents, one behind the other, each of which is computed as if
// it stood alone; of a chat, answers count in the loss and prompts do not.
//
//===----------------------------------------------------------------------===//

#ifndef MODELS_PACKING_H
#define MODELS_PACKING_H

#include "dsl/Operations.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::models {

/// What is read from the tokens of a sample beside the tokens themselves.
struct PackingConfig {
  int64_t documentEnd = -1; ///< the token that ends a document; -1: a sample is one document
  /// "ANSWER" or "ANSWER:END", each one or more tokens separated by commas: only targets after
  /// ANSWER count, up to and including END, or the end of the document. Empty: all targets count.
  std::string maskPrompt;

  /// Declares the options --document-end and --mask-prompt of a program (fsdpc::Driver).
  template <class Program> void declare(Program &program) {
    program.option("--document-end", documentEnd,
                   "token that ends a document: positions and attention begin anew behind it, and "
                   "the first token of the next document is no target; with -1 a sample is one "
                   "document",
                   {-1, dsl::kMaxSize});
    program.option("--mask-prompt", maskPrompt, "ANSWER[:END]",
                   "only answers count in the loss: what follows the tokens ANSWER, up to and "
                   "including the tokens END or, without them, the end of the document; each is "
                   "token ids separated by commas");
  }

  /// Throws ModelError for what is not as described, and for tokens that are not below `vocab`.
  void check(int64_t vocab) const;

  /// Ids and positions of documents, (batch, positions); nothing without `documentEnd`.
  std::optional<dsl::Tensor> ids(dsl::Located tokens) const;
  std::optional<dsl::Tensor> positions(dsl::Located tokens) const;
  /// 1 at the positions whose targets count, else 0; nothing where all do.
  std::optional<dsl::Tensor> mask(dsl::Located tokens) const;
  /// The loss of the model: the mean of `losses`, (batch, positions), over the targets that count.
  /// With `maskPrompt` also the metric `counted`, the share of these targets.
  void addLoss(dsl::Model &model, dsl::Located losses, dsl::Located tokens) const;
};

} // namespace fsdp::models

#endif // MODELS_PACKING_H
