//===- TokenFile.cpp ------------------------------------------------------===//

#include "tools/fsdpc-tokenize/TokenFile.h"

#include "base/Error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdpc {

using base::Error;

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

struct Form {
  std::uint32_t magic, version;
};
constexpr Form kNarrow = {20240520, 1}, kWide = {20240801, 7};

using Header = std::array<std::uint32_t, 256>;

Header headerOf(bool isWide, std::int64_t tokens) {
  const Form form = isWide ? kWide : kNarrow;
  Header header{};
  header[0] = form.magic;
  header[1] = form.version;
  header[2] = static_cast<std::uint32_t>(tokens);
  return header;
}

/// The files of `stem`, a number and `ending`, which is a pattern; sorted.
std::vector<std::string> findFiles(const std::string &stem, const std::string &ending) {
  std::string pattern;
  for (const char c : stem) {
    if (std::strchr("*?[]\\", c))
      pattern += '\\';
    pattern += c;
  }
  pattern += "[0-9][0-9][0-9][0-9][0-9][0-9].bin" + ending;
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

} // namespace

PrefixFolder::PrefixFolder(const std::string &prefix) : path(base::folderOf(prefix)) {
  isCreated = mkdir(path.c_str(), 0777) == 0;
  if (isCreated || errno == EEXIST) // reported under the name of the token file
    return;
  if (errno == ENOENT)
    throw Error("--out: cannot create the folder '" + path + "': there is no folder '" +
                base::folderOf(path) + "'; create it first");
  throw Error("--out: cannot create the folder '" + path + "': " + std::strerror(errno));
}

PrefixFolder::~PrefixFolder() {
  if (isCreated)
    rmdir(path.c_str()); // which fails where files are in it
}

TokenFiles::TokenFiles(std::string prefix, const std::string &split, std::int64_t shardTokens,
                       bool isWide)
    : stem(std::move(prefix) + "_" + split + "_"), shardTokens(shardTokens), isWide(isWide) {
  if (const std::vector<std::string> earlier = findFiles(stem, ""); !earlier.empty())
    throw Error("'" + earlier.front() +
                "' exists, expected no files of an earlier run, which would be mixed with those of "
                "this one; remove them or give another --out");
  for (const std::string &unfinished : findFiles(stem, ".tmp.*"))
    base::removeUnfinished(unfinished);
  open();
}

void TokenFiles::open() {
  char number[24];
  std::snprintf(number, sizeof number, "%06zu.bin", shards.size());
  shards.emplace_back(stem + number);
  const Header header = headerOf(isWide, 0); // the count is written at the end
  buffer.assign(reinterpret_cast<const char *>(header.data()), sizeof header);
}

void TokenFiles::add(const std::vector<std::uint32_t> &tokens) {
  for (const std::uint32_t token : tokens) {
    if (shards.back().tokens == shardTokens) {
      flush();
      open();
    }
    buffer.append(reinterpret_cast<const char *>(&token), isWide ? 4 : 2); // little-endian
    ++shards.back().tokens;
    if (buffer.size() >= kBufferBytes)
      flush();
  }
  total += static_cast<std::int64_t>(tokens.size());
}

void TokenFiles::flush() {
  shards.back().file.write(buffer.data(), buffer.size());
  buffer.clear();
}

void TokenFiles::commit() {
  flush();
  for (Shard &shard : shards) {
    const Header header = headerOf(isWide, shard.tokens);
    shard.file.writeAtBegin(header.data(), sizeof header);
  }
  for (Shard &shard : shards)
    shard.file.commit();
}

std::vector<TokenFiles::Written> TokenFiles::written() const {
  std::vector<Written> all;
  for (const Shard &shard : shards)
    all.push_back({shard.path.name(), shard.tokens});
  return all;
}

TokenReader::TokenReader(const std::string &path) : file(path) {
  const auto refuse = [&](const std::string &why) {
    throw Error("'" + path + "': " + why + "; give a file that fsdpc-tokenize or llm.c wrote");
  };
  Header header{};
  if (file.size() < sizeof header)
    refuse("got " + std::to_string(file.size()) + " bytes, expected a header of 1024");
  std::memcpy(header.data(), file.data(), sizeof header);
  isWide = header[0] == kWide.magic;
  const Form form = isWide ? kWide : kNarrow;
  if (header[0] != form.magic || header[1] != form.version)
    refuse("got magic number " + std::to_string(header[0]) + " and version " +
           std::to_string(header[1]) + ", expected 20240520 and 1, or 20240801 and 7");
  count = header[2];
  if (const std::size_t bytes = sizeof header + header[2] * std::size_t(isWide ? 4 : 2);
      file.size() != bytes)
    refuse("got " + std::to_string(file.size()) + " bytes, expected " + std::to_string(bytes) +
           " for the " + std::to_string(count) + " tokens of its header");
}

std::uint32_t TokenReader::operator[](std::int64_t index) const {
  const char *const tokens = file.data() + sizeof(Header);
  std::uint32_t token = 0; // little-endian
  std::memcpy(&token, tokens + index * (isWide ? 4 : 2), isWide ? 4 : 2);
  return token;
}

} // namespace fsdpc
