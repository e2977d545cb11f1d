//===- PowerLossFileSystem.h - what a power failure may leave -------------===//
//
// A file system in memory, after the guarantees of POSIX and no more: the content of a file is on
// the device once the file was synced, a name once its folder was. Of everything since then any
// part may be there in any combination: each write whole, in half or not at all, each change of a
// folder's names or not (a rename is one change). A page that was written past the page cache may
// be in it no more: who writes there through it as well, or misaligned, gets an error.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_RUNTIME_POWERLOSSFILESYSTEM_H
#define TEST_UNIT_RUNTIME_POWERLOSSFILESYSTEM_H

#include "base/FileSystem.h"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace fsdp::rt {

using namespace base;

class PowerLossFileSystem final : public FileSystem {
public:
  /// `path` is the folder that exists at the start. `crash` is called after every call that changed
  /// something.
  explicit PowerLossFileSystem(std::string path) : path(std::move(path)) {
    nodes.push_back({/*isFolder=*/true});
  }

  std::function<void()> crash;
  /// Syncs of files, or of folders, that do nothing, which tests must detect.
  bool losesFileSyncs = false, losesFolderSyncs = false;
  /// The file system's errors for writes past the page cache: when a file is opened, and when it is
  /// written.
  bool refusesDirectOpens = false, refusesDirectWrites = false;
  int directWrites = 0;
  /// The call with this number, from 0, fails with this reason.
  int failingCall = -1, failure = 0;
  int calls = 0;

  int open(const std::string &name, Open how, int &file) override;
  int write(int file, const void *data, std::size_t bytes, std::uint64_t offset) override;
  int resize(int file, std::uint64_t bytes) override;
  int sync(int file) override;
  int close(int file) override;
  int rename(const std::string &from, const std::string &to) override;
  int makeFolder(const std::string &name) override;
  int removeFile(const std::string &name) override;
  int removeFolder(const std::string &name) override;
  int syncFolder(const std::string &name) override;
  bool isLink(const std::string &) override { return false; }
  int list(const std::string &name, std::vector<std::string> &names) override;

  /// The number of writes and changes of names that are not on the device yet.
  std::size_t pending() const;
  /// The outcome of each of them.
  enum class Fate : unsigned char { Lost, Done, FirstHalf, SecondHalf };
  /// Folders, by their paths behind that of the start ("" for itself), and in each the content of
  /// its files.
  using Tree = std::map<std::string, std::map<std::string, std::string>>;
  /// The operations on the device, and those of the rest that `fate` selects.
  Tree left(const std::vector<Fate> &fate) const;
  /// Everything.
  Tree tree() const { return left(std::vector<Fate>(pending(), Fate::Done)); }

private:
  static constexpr int kDirect = 1 << 30; ///< in descriptors
  struct Write {
    std::uint64_t offset;
    std::string data;
    bool isSize; ///< `offset` is the new size
  };
  /// Names that appear (a node) or disappear (-1), at once.
  using Change = std::vector<std::pair<std::string, int>>;
  struct Node {
    bool isFolder = false;
    std::string content = {}, durable = {};
    std::vector<Write> writes = {};
    std::set<std::uint64_t> directPages = {}, cachedPages = {};
    std::map<std::string, int> names = {}, durableNames = {};
    std::vector<Change> changes = {};
  };

  int nodeAt(const std::string &name) const;
  /// The file of a descriptor, whichever way it is open.
  Node &nodeOf(int file) { return nodes[static_cast<std::size_t>(file & ~kDirect)]; }
  int change(const std::string &folder, Change change);
  bool fails(int &reason) { return calls++ == failingCall && (reason = failure); }
  int changed() {
    if (crash)
      crash();
    return 0;
  }
  static void apply(std::string &content, const Write &write);
  static void apply(std::map<std::string, int> &names, const Change &change);
  void add(Tree &tree, int folder, const std::string &path, const std::vector<Fate> &fate,
           const std::vector<std::size_t> &first) const;
  std::string contentOf(const Node &file, const std::vector<Fate> &fate, std::size_t next) const;

  std::string path;
  std::vector<Node> nodes;
};

/// Writes a tree below a folder that exists.
void writeTree(const PowerLossFileSystem::Tree &tree, const std::string &to);

} // namespace fsdp::rt

#endif // TEST_UNIT_RUNTIME_POWERLOSSFILESYSTEM_H
