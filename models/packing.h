//===- packing.h - documents and loss masks in rows of tokens ---*- C++ -*-===//
//
//   models::PackingConfig packing;
//   packing.declare(driver);
//   ...
//   packing.addLoss(model, crossEntropy(logits, targets), tokens);
// A row of tokens contains several consecutive documents, each computed independently; in a chat,
// only the answers are part of the loss, not the prompts.
//
//===----------------------------------------------------------------------===//

#ifndef MODELS_PACKING_H
#define MODELS_PACKING_H

#include "dsl/Operations.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::models {

/// The structure of a sample that is derived from its tokens.
struct PackingConfig {
  int64_t documentEnd = -1; ///< the token that ends a document; -1: a sample is one document
  /// "ANSWER" or "ANSWER:END", each one or more tokens separated by commas: the loss includes only
  /// targets after ANSWER, up to and including END, or the end of the document. Empty: all targets.
  std::string maskPrompt;

  /// Declares the options --document-end and --mask-prompt of a program (fsdpc::Driver).
  template <class Program> void declare(Program &program) {
    program.option("--document-end", documentEnd,
                   "token that ends a document: positions and attention start again after it, and "
                   "the first token of the next document is not a target; with -1 a sample is one "
                   "document",
                   {-1, dsl::kMaxSize});
    program.option("--mask-prompt", maskPrompt, "ANSWER[:END]",
                   "only answers count in the loss: targets after the tokens ANSWER, up to and "
                   "including the tokens END or, without them, the end of the document; each is "
                   "token ids separated by commas");
  }

  /// Throws ModelError for invalid values, and for tokens that are not below `vocab`.
  void check(int64_t vocab) const;

  /// Ids and positions of documents, (batch, positions); nothing without `documentEnd`.
  std::optional<dsl::Tensor> ids(dsl::Located tokens) const;
  std::optional<dsl::Tensor> positions(dsl::Located tokens) const;
  /// 1 at the positions whose targets are part of the loss, else 0; nothing if all are.
  std::optional<dsl::Tensor> mask(dsl::Located tokens) const;
  /// The loss of the model: the mean of `losses`, (batch, positions), over these targets. With
  /// `maskPrompt` also the metric `counted`, the share of these targets.
  void addLoss(dsl::Model &model, dsl::Located losses, dsl::Located tokens) const;
};

} // namespace fsdp::models

#endif // MODELS_PACKING_H
