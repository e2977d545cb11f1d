#include "test/unit/base/PowerLossFileSystem.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace fsdp::rt {

using namespace base;

static std::string nameIn(const std::string &name) { return name.substr(name.rfind('/') + 1); }

int PowerLossFileSystem::nodeAt(const std::string &name) const {
  if (name == path)
    return 0;
  if (name.find('/') == name.npos)
    return -1;
  const int folder = nodeAt(folderOf(name));
  if (folder < 0)
    return -1;
  const std::map<std::string, int> &names = nodes[static_cast<std::size_t>(folder)].names;
  const auto found = names.find(nameIn(name));
  return found == names.end() ? -1 : found->second;
}

void PowerLossFileSystem::apply(std::string &content, const Write &write) {
  if (write.isSize)
    return content.resize(write.offset);
  content.resize(std::max<std::size_t>(content.size(), write.offset + write.data.size()));
  content.replace(write.offset, write.data.size(), write.data);
}

void PowerLossFileSystem::apply(std::map<std::string, int> &names, const Change &change) {
  for (const auto &[name, node] : change)
    if (node < 0)
      names.erase(name);
    else
      names[name] = node;
}

int PowerLossFileSystem::change(const std::string &folder, Change change) {
  const int at = nodeAt(folder);
  if (at < 0)
    return ENOENT;
  Node &node = nodes[static_cast<std::size_t>(at)];
  apply(node.names, change);
  node.changes.push_back(std::move(change));
  return changed();
}

int PowerLossFileSystem::open(const std::string &name, Open how, int &file) {
  int reason = 0;
  if (fails(reason))
    return reason;
  file = nodeAt(name);
  if (how == Open::Direct && refusesDirectOpens)
    return EINVAL;
  if (file >= 0 && how == Open::Direct)
    file |= kDirect;
  if (file >= 0)
    return how == Open::CreateNew ? EEXIST : 0;
  if (how == Open::Existing || how == Open::Direct)
    return ENOENT;
  file = static_cast<int>(nodes.size());
  nodes.push_back({});
  return change(folderOf(name), {{nameIn(name), file}});
}

int PowerLossFileSystem::write(int file, const void *data, std::size_t bytes,
                               std::uint64_t offset) {
  int reason = 0;
  if (fails(reason))
    return reason;
  const bool isDirect = file & kDirect;
  constexpr auto page = kDirectAlignment;
  if (isDirect && (refusesDirectWrites || offset % page || bytes % page ||
                   reinterpret_cast<std::uintptr_t>(data) % page))
    return EINVAL;
  Node &node = nodeOf(file);
  for (std::uint64_t at = offset / page; at * page < offset + bytes; ++at) {
    (isDirect ? node.directPages : node.cachedPages).insert(at);
    if ((isDirect ? node.cachedPages : node.directPages).count(at))
      return EDOM;
  }
  directWrites += isDirect;
  node.writes.push_back({offset, std::string(static_cast<const char *>(data), bytes), false});
  apply(node.content, node.writes.back());
  return changed();
}

int PowerLossFileSystem::resize(int file, std::uint64_t bytes) {
  int reason = 0;
  if (fails(reason))
    return reason;
  Node &node = nodeOf(file);
  node.writes.push_back({bytes, "", true});
  apply(node.content, node.writes.back());
  return changed();
}

int PowerLossFileSystem::sync(int file) {
  int reason = 0;
  if (fails(reason))
    return reason;
  Node &node = nodeOf(file);
  if (!losesFileSyncs) {
    node.durable = node.content;
    node.writes.clear();
  }
  return changed();
}

int PowerLossFileSystem::close(int) {
  int reason = 0;
  return fails(reason) ? reason : 0;
}

int PowerLossFileSystem::rename(const std::string &from, const std::string &to) {
  int reason = 0;
  if (fails(reason))
    return reason;
  const int node = nodeAt(from);
  if (node < 0)
    return ENOENT;
  if (folderOf(from) != folderOf(to))
    return EXDEV; // no code does that
  return change(folderOf(from), {{nameIn(from), -1}, {nameIn(to), node}});
}

int PowerLossFileSystem::makeFolder(const std::string &name) {
  int reason = 0;
  if (fails(reason))
    return reason;
  if (nodeAt(name) >= 0)
    return EEXIST;
  nodes.push_back({/*isFolder=*/true});
  return change(folderOf(name), {{nameIn(name), static_cast<int>(nodes.size()) - 1}});
}

int PowerLossFileSystem::removeFile(const std::string &name) {
  int reason = 0;
  if (fails(reason))
    return reason;
  return nodeAt(name) < 0 ? ENOENT : change(folderOf(name), {{nameIn(name), -1}});
}

int PowerLossFileSystem::removeFolder(const std::string &name) {
  int reason = 0;
  if (fails(reason))
    return reason;
  const int node = nodeAt(name);
  if (node < 0)
    return ENOENT;
  if (!nodes[static_cast<std::size_t>(node)].names.empty())
    return ENOTEMPTY;
  return change(folderOf(name), {{nameIn(name), -1}});
}

int PowerLossFileSystem::syncFolder(const std::string &name) {
  int reason = 0;
  if (fails(reason))
    return reason;
  const int at = nodeAt(name);
  if (at < 0)
    return ENOENT;
  Node &node = nodes[static_cast<std::size_t>(at)];
  if (!losesFolderSyncs) {
    node.durableNames = node.names;
    node.changes.clear();
  }
  return changed();
}

int PowerLossFileSystem::list(const std::string &name, std::vector<std::string> &names) {
  int reason = 0;
  if (fails(reason))
    return reason;
  names.clear();
  const int at = nodeAt(name);
  if (at < 0)
    return ENOENT;
  if (!nodes[static_cast<std::size_t>(at)].isFolder)
    return ENOTDIR;
  for (const auto &entry : nodes[static_cast<std::size_t>(at)].names)
    names.push_back(entry.first);
  return 0;
}

std::size_t PowerLossFileSystem::pending() const {
  std::size_t count = 0;
  for (const Node &node : nodes)
    count += node.writes.size() + node.changes.size();
  return count;
}

PowerLossFileSystem::Tree PowerLossFileSystem::left(const std::vector<Fate> &fate) const {
  std::vector<std::size_t> first; // number of the first of what is pending for each node
  std::size_t count = 0;
  for (const Node &node : nodes) {
    first.push_back(count);
    count += node.writes.size() + node.changes.size();
  }
  Tree tree;
  add(tree, 0, "", fate, first);
  return tree;
}

void PowerLossFileSystem::add(Tree &tree, int folder, const std::string &path,
                              const std::vector<Fate> &fate,
                              const std::vector<std::size_t> &first) const {
  const Node &node = nodes[static_cast<std::size_t>(folder)];
  std::size_t next = first[static_cast<std::size_t>(folder)];
  std::map<std::string, int> names = node.durableNames;
  for (const Change &change : node.changes)
    if (fate[next++] != Fate::Lost)
      apply(names, change);
  tree[path];
  for (const auto &[name, child] : names) {
    const auto at = static_cast<std::size_t>(child);
    if (nodes[at].isFolder)
      add(tree, child, path + "/" + name, fate, first);
    else
      tree[path][name] = contentOf(nodes[at], fate, first[at]);
  }
}

std::string PowerLossFileSystem::contentOf(const Node &file, const std::vector<Fate> &fate,
                                           std::size_t next) const {
  std::string content = file.durable;
  for (const Write &write : file.writes) {
    const Fate what = fate[next++];
    const std::size_t half = write.data.size() / 2;
    if (what == Fate::Lost)
      continue;
    if (write.isSize || what == Fate::Done)
      apply(content, write);
    else if (what == Fate::FirstHalf)
      apply(content, {write.offset, write.data.substr(0, half), false});
    else
      apply(content, {write.offset + half, write.data.substr(half), false});
  }
  return content;
}

void writeTree(const PowerLossFileSystem::Tree &tree, const std::string &to) {
  for (const auto &[folder, files] : tree) {
    std::filesystem::create_directories(to + folder);
    for (const auto &[name, content] : files)
      std::ofstream(to + folder + "/" + name, std::ios::binary) << content;
  }
}

} // namespace fsdp::rt
