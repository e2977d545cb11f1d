#include "runtime/data/OpenDataset.h"

#include "base/Error.h"
#include "base/MappedFile.h"

#include <algorithm>
#include <iterator>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kHeaderBytes = 1024;
constexpr std::int64_t kBytesVocabulary = 256;

struct Form {
  std::uint32_t magic;
  std::uint32_t version;
  std::size_t tokenBytes;
};
constexpr Form kForms[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr Form kBytes = {0, 0, 1};

class TokenDataset final : public Dataset {
public:
  TokenDataset(const std::string &path, Table<Input> inputs) : file(path), inputs(inputs) {
    checkInputs();
    encoding = findForm();
    if (encoding.magic)
      checkHeader();
    tokens = file.data() + (encoding.magic ? kHeaderBytes : 0);
    count = encoding.magic ? load<std::uint32_t>(file.data(), 2) : file.size();
    if (count < static_cast<std::size_t>(context) + 1)
      refuse("got " + std::to_string(count) + " tokens, expected at least " +
             std::to_string(context + 1) + " for one sample of " + std::to_string(context));
    withTokenType([&](auto token) { checkTokens<decltype(token)>(); });
    file.releasePages(); // checked; ranks read their parts
  }

  std::int64_t samples() const override { return (static_cast<std::int64_t>(count) - 1) / context; }
  void requireWhole() const override { file.requireWhole(); }
  void readAhead(std::size_t input, std::int64_t sample) const override {
    const auto bytes = static_cast<std::size_t>(context) * encoding.tokenBytes;
    if (input == 0) // the others read the same tokens, and one more
      file.readAhead(tokens + static_cast<std::size_t>(sample) * bytes,
                     bytes + encoding.tokenBytes);
  }
  const char *form() const override {
    return encoding.tokenBytes == 1   ? "bytes"
           : encoding.tokenBytes == 2 ? "16-bit tokens"
                                      : "32-bit tokens";
  }

  void read(std::size_t input, std::int64_t sample, void *to) const override {
    const std::int64_t first = sample * context + (inputs[input].source == Source::Targets);
    if (inputs[input].slice.dtype == DType::I32)
      return copy(static_cast<std::size_t>(first), static_cast<std::int32_t *>(to));
    copy(static_cast<std::size_t>(first), static_cast<std::int64_t *>(to));
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw Error("'" + file.path() + "': " + why);
  }

  /// Inputs that a compiler must not emit.
  void checkInputs() {
    context = elements(inputs[0].sample);
    for (const Input &input : inputs) {
      const std::string name = "'" + std::string(input.name) + "'";
      if (input.source == Source::Tensor)
        throw Error("input " + name + " is a tensor, expected tokens or targets as '" +
                    std::string(inputs[0].name) + "' is");
      if (elements(input.sample) != context || context < 1)
        throw Error("input " + name + ": got samples of " + std::to_string(elements(input.sample)) +
                    " tokens, expected " + std::to_string(context) + " as '" + inputs[0].name +
                    "' has");
      if (input.slice.dtype != DType::I32 && input.slice.dtype != DType::I64)
        throw Error("input " + name + ": got element type " + nameOf(input.slice.dtype) +
                    ", expected i32 or i64 for tokens");
      if (input.limit > 0)
        vocabulary = vocabulary ? std::min(vocabulary, input.limit) : input.limit;
    }
  }

  Form findForm() const {
    if (looksLikeSafetensors(file))
      refuse("got a safetensors file, expected tokens, which input '" +
             std::string(inputs[0].name) + "' takes; give a token file" +
             (vocabulary == kBytesVocabulary ? " or a text" : ""));
    const bool anyMagic = file.size() >= sizeof(std::uint32_t);
    const auto magic = anyMagic ? load<std::uint32_t>(file.data(), 0) : 0;
    for (const Form &candidate : kForms)
      if (anyMagic && candidate.magic == magic)
        return candidate;
    if (vocabulary == kBytesVocabulary)
      return kBytes;
    if (!anyMagic)
      refuse("not a token file: got " + std::to_string(file.size()) +
             " bytes, expected a header of " + std::to_string(kHeaderBytes) +
             "; write or download the file again");
    refuse("not a token file: got magic number " + std::to_string(magic) + ", expected " +
           std::to_string(kForms[0].magic) + " (16-bit tokens) or " +
           std::to_string(kForms[1].magic) +
           " (32-bit tokens); plain bytes need a vocabulary of 256, this model has " +
           std::to_string(vocabulary));
  }

  void checkHeader() const {
    if (file.size() < kHeaderBytes)
      refuse("got " + std::to_string(file.size()) + " bytes, expected a header of " +
             std::to_string(kHeaderBytes) + "; write or download the file again");
    const auto version = load<std::uint32_t>(file.data(), 1);
    if (version != encoding.version)
      refuse("got version " + std::to_string(version) + " of magic number " +
             std::to_string(encoding.magic) + ", expected " + std::to_string(encoding.version));
    const std::size_t counted = load<std::uint32_t>(file.data(), 2);
    const std::size_t expected = kHeaderBytes + counted * encoding.tokenBytes;
    if (file.size() != expected)
      refuse("got " + std::to_string(file.size()) + " bytes, expected " + std::to_string(expected) +
             " for the " + std::to_string(counted) +
             " tokens that the header counts; write or download the file again");
  }

  template <typename Token> void checkTokens() const {
    const bool wide = std::all_of(inputs.begin(), inputs.end(), [](const Input &input) {
      return input.slice.dtype == DType::I64;
    });
    const auto most =
        static_cast<std::uint32_t>(vocabulary ? vocabulary - 1 : (wide ? UINT32_MAX : INT32_MAX));
    constexpr std::size_t block = 4096;
    for (std::size_t begin = 0; begin < count; begin += block) {
      const std::size_t end = std::min(count, begin + block);
      bool bad = false;
      for (std::size_t i = begin; i < end; ++i)
        bad |= load<Token>(tokens, i) > most;
      for (std::size_t i = begin; bad && i < end; ++i)
        if (load<Token>(tokens, i) > most)
          refuse("got token " + std::to_string(load<Token>(tokens, i)) + " at position " +
                 std::to_string(i) + ", expected 0 to " + std::to_string(most) +
                 "; use the model's own vocabulary");
    }
  }

  template <typename Int> void copy(std::size_t first, Int *to) const {
    withTokenType([&](auto token) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(context); ++i)
        to[i] = static_cast<Int>(load<decltype(token)>(tokens, first + i));
    });
  }

  /// Calls `visit` with a number of the file's type.
  template <typename Visit> void withTokenType(Visit visit) const {
    if (encoding.tokenBytes == 1)
      visit(std::uint8_t());
    else if (encoding.tokenBytes == 2)
      visit(std::uint16_t());
    else
      visit(std::uint32_t());
  }

  MappedFile file;
  Table<Input> inputs;
  std::int64_t context = 0;
  std::int64_t vocabulary = 0; ///< 0: unknown
  Form encoding{};
  const char *tokens = nullptr;
  std::size_t count = 0;
};

} // namespace

bool looksLikeSafetensors(const MappedFile &file) {
  if (file.size() <= sizeof(std::uint64_t) || file.data()[sizeof(std::uint64_t)] != '{')
    return false;
  const auto header = load<std::uint64_t>(file.data(), 0);
  return header >= 2 && header <= file.size() - sizeof(std::uint64_t);
}

bool isTokenFile(const std::string &path) {
  const MappedFile file(path);
  return file.size() >= kHeaderBytes &&
         std::any_of(std::begin(kForms), std::end(kForms), [&](const Form &form) {
           return load<std::uint32_t>(file.data(), 0) == form.magic &&
                  load<std::uint32_t>(file.data(), 1) == form.version;
         });
}

std::unique_ptr<Dataset> openTokens(const std::string &path, Table<Input> inputs) {
  return std::make_unique<TokenDataset>(path, inputs);
}

} // namespace fsdp::rt
