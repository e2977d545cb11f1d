//===- TokenFile.h - tokens as training programs read them ------*- C++ -*-===//
//
// llm.c's format: 256 numbers of 32 bits (magic number, version, number of tokens, zeros), then the
// tokens, in 16 or in 32 bits, all little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_TOKENIZE_TOKENFILE_H
#define TOOLS_FSDPC_TOKENIZE_TOKENFILE_H

#include "base/AtomicFile.h"
#include "base/MappedFile.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace fsdpc {

/// The header counts tokens in 31 bits.
constexpr std::int64_t kMaxShardTokens = INT32_MAX;

/// The folder of the files of a prefix, created where it is missing, and then removed at the end
/// unless files are in it. Error: it cannot be created, as where the folder around it is missing.
class PrefixFolder {
public:
  explicit PrefixFolder(const std::string &prefix);
  ~PrefixFolder();
  PrefixFolder(const PrefixFolder &) = delete;
  PrefixFolder &operator=(const PrefixFolder &) = delete;

private:
  const std::string path;
  bool isCreated = false;
};

/// Writes tokens to files PREFIX_SPLIT_000000.bin and following, of `shardTokens` tokens each but
/// the last. Files appear at commit only; temporary files of a killed run are removed by the next
/// one. Every failure throws a base::Error that names the file.
class TokenFiles {
public:
  /// `isWide`: tokens of 32 bits. Error: a file of that name exists, or could not be written.
  TokenFiles(std::string prefix, const std::string &split, std::int64_t shardTokens, bool isWide);

  void add(const std::vector<std::uint32_t> &tokens);
  void commit();

  std::int64_t tokens() const { return total; }
  struct Written {
    std::string path;
    std::int64_t tokens;
  };
  std::vector<Written> written() const;

private:
  struct Shard {
    base::OutputPath path;
    base::AtomicFile file;
    std::int64_t tokens = 0;
    explicit Shard(const std::string &path) : path(path), file(this->path) {}
  };
  void open();
  void flush();

  const std::string stem; ///< "PREFIX_SPLIT_"
  const std::int64_t shardTokens;
  const bool isWide;
  std::deque<Shard> shards; ///< all open until the end
  std::string buffer;       ///< of the last one
  std::int64_t total = 0;
};

/// A token file, for reading. The constructor throws a base::Error if it is not a token file, or is
/// truncated.
class TokenReader {
public:
  explicit TokenReader(const std::string &path);

  std::int64_t size() const { return count; }
  std::uint32_t operator[](std::int64_t index) const;
  void requireWhole() const { file.requireWhole(); }

private:
  base::MappedFile file;
  bool isWide = false;
  std::int64_t count = 0;
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOKENIZE_TOKENFILE_H
