#include "runtime/train/CheckpointFolder.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "runtime/job/ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr const char *kPrefix = "step-";
constexpr std::size_t kDigits = 8;

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::binary_search(names.begin(), names.end(), name);
}

/// Closes its file unless close() was called, which returns errors.
class OpenFile {
public:
  explicit OpenFile(FileSystem &system) : system(system) {}
  ~OpenFile() {
    if (file >= 0)
      system.close(file);
  }
  int open(const std::string &path, FileSystem::Open how) {
    const int reason = system.open(path, how, file);
    if (reason)
      file = -1;
    return reason;
  }
  int close() { return system.close(std::exchange(file, -1)); }
  int get() const { return file; }

private:
  FileSystem &system;
  int file = -1;
};

} // namespace

std::optional<std::int64_t> stepOfName(const std::string &name) {
  const std::size_t prefix = std::strlen(kPrefix);
  const std::string digits = name.substr(std::min(prefix, name.size()));
  if (name.compare(0, prefix, kPrefix) != 0 || digits.size() < kDigits || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != digits.npos ||
      (digits.size() > kDigits && digits[0] == '0'))
    return std::nullopt;
  return std::stoll(digits);
}

void requireAnswer(const std::string &root, double seconds) {
  const std::optional<int> status = runInChild(seconds, [&] {
    try {
      CheckpointRoot(FileSystem::real(), root).saved();
    } catch (const Error &) { // the next call reports it
    }
    return 0;
  });
  if (!status)
    throw Error(format("'%s' does not answer: its checkpoints were not listed within %g s",
                       root.c_str(), seconds));
}

std::string CheckpointRoot::folderOf(std::int64_t step) const {
  const std::string digits = std::to_string(step);
  return path + "/" + kPrefix + std::string(kDigits - std::min(kDigits, digits.size()), '0') +
         digits;
}

void CheckpointRoot::require(int reason, const char *doing, const std::string &file) const {
  if (reason == 0)
    return;
  std::string message =
      std::string("cannot ") + doing + " '" + file + "': " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    message += "; free some space";
  throw Error(message + "; earlier checkpoints in '" + path + "' are unchanged");
}

std::vector<std::string> CheckpointRoot::namesIn(const std::string &folder) const {
  std::vector<std::string> names;
  const int reason = system.list(folder, names);
  require(reason == ENOENT || reason == ENOTDIR ? 0 : reason, "read the folder", folder);
  return names;
}

std::vector<SavedStep> CheckpointRoot::saved() const { return find(/*takesUnreadable=*/true); }

std::vector<SavedStep> CheckpointRoot::find(bool takesUnreadable) const {
  std::vector<SavedStep> steps;
  for (const std::string &name : namesIn(path))
    if (const std::optional<std::int64_t> step = stepOfName(name)) {
      std::vector<std::string> inside;
      const int reason = system.list(path + "/" + name, inside);
      const bool isUnreadable = reason != 0 && reason != ENOENT && reason != ENOTDIR;
      if (isUnreadable && !takesUnreadable)
        require(reason, "read the folder", path + "/" + name);
      if (isUnreadable || contains(inside, CheckpointManifest::kName))
        steps.push_back({*step, path + "/" + name});
    }
  std::sort(steps.begin(), steps.end(),
            [](const SavedStep &a, const SavedStep &b) { return a.step > b.step; });
  return steps;
}

void CheckpointRoot::create() {
  const int reason = system.makeFolder(path);
  std::vector<std::string> names;
  require(reason == EEXIST ? system.list(path, names) : reason, "create the folder", path);
  if (reason == 0)
    require(system.syncFolder(base::folderOf(path)), "create the folder", path);
}

std::vector<std::string> CheckpointRoot::setAside(std::optional<std::int64_t> after) {
  std::vector<std::string> renamed;
  for (const SavedStep &other : saved()) {
    if (after && other.step <= *after)
      continue;
    const std::vector<std::string> names = namesIn(path);
    const std::string own = nameIn(other.folder);
    int number = 1;
    while (contains(names, own + "." + std::to_string(number)))
      ++number;
    renamed.push_back(other.folder + "." + std::to_string(number));
    require(system.rename(other.folder, renamed.back()), "rename", other.folder);
  }
  if (!renamed.empty())
    require(system.syncFolder(path), "rename checkpoints in", path);
  return renamed;
}

int CheckpointRoot::writeFile(const std::string &name, const std::string &text) {
  OpenFile file(system);
  int reason = file.open(name, FileSystem::Open::Create);
  if (!reason)
    reason = system.resize(file.get(), 0);
  if (!reason)
    reason = system.write(file.get(), text.data(), text.size(), 0);
  if (!reason)
    reason = system.sync(file.get());
  return reason ? reason : file.close();
}

void CheckpointRoot::begin(std::int64_t step, const CheckpointLayout &layout) {
  const std::string folder = folderOf(step),
                    unfinished = folder + "/" + CheckpointManifest::kUnfinished;
  std::vector<std::string> names;
  if (system.list(folder, names) == 0)
    remove(folder);
  require(system.makeFolder(folder), "create the folder", folder);
  OpenFile marker(system);
  require(marker.open(unfinished, FileSystem::Open::Create), "create", unfinished);
  require(marker.close(), "create", unfinished);
  require(system.syncFolder(folder), "create the folder", folder);
  require(system.syncFolder(path), "create the folder", folder);
  for (const CheckpointFile &file : layout.files()) {
    const std::string name = folder + "/" + file.name;
    OpenFile opened(system);
    require(opened.open(name, FileSystem::Open::CreateNew), "create", name);
    require(system.resize(opened.get(), file.bytes), "write", name);
    require(system.write(opened.get(), file.header.data(), file.header.size(), 0), "write", name);
    require(system.sync(opened.get()), "write", name);
    require(opened.close(), "write", name);
  }
  for (const BesideFile &extra : extras) {
    const std::string name = folder + "/" + extra.name;
    require(writeFile(name, extra.text), "write", name);
  }
}

void CheckpointRoot::write(std::int64_t step, const CheckpointLayout &layout,
                           const std::vector<ShardShare> &shares,
                           const std::function<const float *(std::size_t)> &valuesOf,
                           std::vector<std::uint64_t> &checksums) {
  // Elements of a block: small enough to be in the caches for the copy after the checksum.
  constexpr std::size_t kBlock = 64 * 1024;
  RangeWriter writer(system, sizes);
  std::size_t firstTensor = 0;
  for (std::size_t f = 0; f < layout.files().size(); ++f) {
    const CheckpointFile &file = layout.files()[f];
    const std::string name = folderOf(step) + "/" + file.name;
    for (std::size_t s = 0; s < shares.size(); ++s) {
      if (shares[s].pieces.empty() || shares[s].pieces[0].file != f) // a shard is in one file
        continue;
      if (!writer.isOpen())
        require(writer.open(name), "write", name);
      const float *values = valuesOf(s);
      for (const CheckpointPiece &piece : shares[s].pieces) {
        const CheckpointTensor &tensor = file.tensors[piece.tensor];
        for (std::size_t done = 0; done < piece.count; done += kBlock) {
          const std::size_t count = std::min(kBlock, piece.count - done);
          const float *first = values + piece.inShard + done;
          const std::size_t inTensor = piece.inTensor + done;
          checksums[firstTensor + piece.tensor] += checksum(first, inTensor, count);
          require(
              writer.write(first, count * sizeof(float), tensor.offset + inTensor * sizeof(float)),
              "write", name);
        }
      }
    }
    firstTensor += file.tensors.size();
    if (writer.isOpen())
      require(writer.finish(), "write", name);
  }
}

void CheckpointRoot::commit(std::int64_t step, const CheckpointManifest &manifest) {
  const std::string folder = folderOf(step),
                    unfinished = folder + "/" + CheckpointManifest::kUnfinished,
                    name = folder + "/" + CheckpointManifest::kName;
  require(system.syncFolder(folder), "write", folder);
  require(writeFile(unfinished, manifest.text()), "write", unfinished);
  require(system.rename(unfinished, name), "rename", unfinished);
  require(system.syncFolder(folder), "write", name);
}

void CheckpointRoot::remove(const std::string &folder) {
  const auto isDone = [](int reason) { return reason == ENOENT ? 0 : reason; };
  if (system.isLink(folder))
    throw Error(
        "cannot remove '" + folder +
        "': it is a symbolic link, and the checkpoint that it leads to may be another run's; both "
        "are as they were: remove the link, or move it elsewhere");
  std::vector<std::string> names;
  require(system.list(folder, names), "read the folder", folder);
  for (const std::string &name : names) {
    std::vector<std::string> inside;
    const int reason = system.list(folder + "/" + name, inside);
    require(reason == ENOTDIR ? 0 : isDone(reason), "remove", folder + "/" + name);
    if (reason == 0)
      throw Error(
          "cannot remove '" + folder + "': it holds the folder '" + name +
          "', which is not part of a checkpoint; it was not changed: move its contents elsewhere");
  }
  const std::string manifest = folder + "/" + CheckpointManifest::kName;
  const std::string unfinished = folder + "/" + CheckpointManifest::kUnfinished;
  // From here on it is an unfinished checkpoint, also after a crash.
  const bool wasComplete = contains(names, CheckpointManifest::kName);
  if (wasComplete) {
    require(system.rename(manifest, unfinished), "rename", manifest);
    require(system.syncFolder(folder), "rename", manifest);
  }
  for (const std::string &name : names)
    if (name != CheckpointManifest::kName && name != CheckpointManifest::kUnfinished)
      require(isDone(system.removeFile(folder + "/" + name)), "remove", folder + "/" + name);
  if (wasComplete || contains(names, CheckpointManifest::kUnfinished)) {
    // A partial checkpoint without it would look like weights of the user.
    require(system.syncFolder(folder), "remove", unfinished);
    require(isDone(system.removeFile(unfinished)), "remove", unfinished);
  }
  require(isDone(system.removeFolder(folder)), "remove the folder", folder);
}

void CheckpointRoot::discard(std::int64_t step) noexcept {
  std::vector<std::string> inside;
  const std::string folder = folderOf(step);
  try {
    if (system.list(folder, inside) == 0 && !contains(inside, CheckpointManifest::kName))
      remove(folder);
  } catch (const Error &) { // the rest is not a checkpoint, and the next save removes it
  }
}

void CheckpointRoot::prune(std::int64_t step, std::int64_t keep) {
  // The latest checkpoints are not known if a folder cannot be read.
  const std::vector<SavedStep> all = find(/*takesUnreadable=*/false);
  std::exception_ptr first; // a failure does not prevent the removal of others
  const auto tryToRemove = [&](const std::string &folder) {
    try {
      remove(folder);
    } catch (const Error &) {
      if (!first)
        first = std::current_exception();
    }
  };
  for (std::size_t i = static_cast<std::size_t>(keep); keep > 0 && i < all.size(); ++i)
    tryToRemove(all[i].folder);
  for (const std::string &name : namesIn(path)) {
    const std::optional<std::int64_t> other = stepOfName(name);
    if (!other || *other == step)
      continue;
    const std::vector<std::string> inside = namesIn(path + "/" + name);
    if (inside.empty() || (contains(inside, CheckpointManifest::kUnfinished) &&
                           !contains(inside, CheckpointManifest::kName)))
      tryToRemove(path + "/" + name);
  }
  if (first)
    std::rethrow_exception(first);
}

} // namespace fsdp::rt
