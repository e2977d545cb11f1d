//===- TokenizerReader.cpp - tokenizer.json under fuzzing -----------------===//

#include "base/Error.h"
#include "base/Utf8.h"
#include "test/fuzz/Readers.h"
#include "tokenizer/Tokenizer.h"

#include <fstream>
#include <iterator>

using namespace tokenizer;

namespace fsdp::fuzz {

namespace {

const char *const kTexts[] = {"", "ab  a\tb<e> it's 123\r\n",
                              "e\xcc\x81 \xe4\xbd\xa0\xf0\x9f\x98\x80 \xe2\x96\x81 \xff",
                              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

/// Properties of an accepted file for any text.
std::string complaintOf(const Tokenizer &tokenizer, const std::string &text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, true);
  for (const TokenId id : ids)
    if (!tokenizer.textOf(id))
      return "encodes as id " + std::to_string(id) + ", which is no token";
  StreamDecoder decoder(tokenizer, false);
  std::string streamed;
  for (const TokenId id : ids)
    streamed += decoder.add(id);
  streamed += decoder.finish();
  if (base::findInvalid(streamed) != streamed.npos)
    return "streams what is no text";
  if (streamed != base::replaceInvalid(tokenizer.decode(ids, false)))
    return "streams another text than it decodes";
  return "";
}

} // namespace

Outcome readTokenizer(const std::string &bytes) {
  try {
    const Tokenizer tokenizer = Tokenizer::parse(bytes, "tokenizer.json");
    for (const char *text : kTexts)
      try {
        if (std::string complaint = complaintOf(tokenizer, text); !complaint.empty())
          return {true, complaint};
      } catch (const base::Error &error) { // an expression without end
        if (!*error.what())
          return {true, "refuses a text without a message"};
      }
    return {true, ""};
  } catch (const base::Error &error) {
    return {false, *error.what() ? "" : "refused without a message"};
  }
}

std::string rightTokenizer(std::mt19937 &random) {
  const std::string words =
      R"({"type":"Split","pattern":{"Regex":)"
      R"("(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},)"
      R"("behavior":"Isolated","invert":false})";
  const std::string steps[] = {
      words, R"({"type":"Digits","individual_digits":true})",
      R"({"type":"Punctuation","behavior":"MergedWithNext"})",
      R"({"type":"Split","pattern":{"String":" "},"behavior":"Contiguous"})",
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true})"};
  const std::string pieces =
      R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},)"
      R"({"type":"Replace","pattern":{"String":" "},"content":"_"},{"type":"NFKD"}]})";
  const std::string forms[] = {"null", R"({"type":"NFC"})", pieces};
  const bool byteLevel = random() % 2;
  std::string pre = byteLevel ? R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})"
                              : steps[random() % std::size(steps)];
  if (random() % 2)
    pre = R"({"type":"Sequence","pretokenizers":[)" + steps[random() % 4] + "," + pre + "]}";
  const char *const decoder =
      byteLevel ? R"({"type":"ByteLevel"})"
                : R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},)"
                  R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
                  R"({"type":"Strip","content":" ","start":1,"stop":0}]})";
  return R"({"version":"1.0","added_tokens":[{"id":9,"content":"<e>","single_word":false,)"
         R"("lstrip":true,"rstrip":true,"normalized":)" +
         std::string(random() % 2 ? "true" : "false") + R"(,"special":true}],"normalizer":)" +
         forms[random() % 3] + R"(,"pre_tokenizer":)" + pre +
         R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<e>"}},)"
         R"({"Sequence":{"id":"A"}}],"special_tokens":{"<e>":{"ids":[9]}}},"decoder":)" +
         decoder +
         R"(,"model":{"type":"BPE","unk_token":"?","fuse_unk":true,"byte_fallback":true,)" +
         R"("ignore_merges":)" + (random() % 2 ? "true" : "false") +
         R"(,"vocab":{"?":0,"a":1,"b":2,"_":3,"ab":4,"aa":5,"aaaa":6,"_a":7,"<0xFF>":8},"merges":)" +
         (random() % 2 ? R"(["a b","a a","aa aa","_ a"])"
                       : R"([["a","b"],["a","a"],["aa","aa"],["_","a"]])") +
         "}}";
}

} // namespace fsdp::fuzz
