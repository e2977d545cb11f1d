//===- TextCodec.h - texts as the tokens of a model -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_TEXTCODEC_H
#define FSDP_RUNTIME_TRAIN_TEXTCODEC_H

#include "runtime/program/Program.h"
#include "runtime/train/BesideFiles.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The tokens of a prompt, and the text of the tokens that follow it.
class TextCodec {
public:
  virtual ~TextCodec() = default;

  /// Throws an error if the text is not a text of such tokens, or a token is not one of the
  /// model's.
  virtual std::vector<std::int32_t> encode(const std::string &text) const = 0;
  /// The next tokens follow these.
  virtual void follow(const std::vector<std::int32_t> &prompt) {}
  /// The text that this token completes; characters are not cut.
  virtual std::string add(std::int32_t token) = 0;
  /// The rest of a character that was not completed.
  virtual std::string finish() { return ""; }
  /// True for a token that ends a text; it is not shown.
  virtual bool isEnd(std::int32_t token) const { return false; }

  /// By a file tokenizer.json of `beside`; without one, bytes if the vocabulary of `program` has
  /// 256 tokens, else ids as decimal numbers. With a tokenizer, the tokens that end a text are
  /// those that generation_config.json or tokenizer_config.json of `beside` names. Error: the
  /// tokenizer is not supported.
  static std::unique_ptr<TextCodec> open(const Program &program, const BesideFiles &beside);
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_TEXTCODEC_H
