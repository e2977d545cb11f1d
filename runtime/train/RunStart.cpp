#include "runtime/train/RunStart.h"

#include <fcntl.h>
#include <new>

namespace fsdp::rt {

using namespace base;

RunStart::RunStart()
    : pages(Mapping::anonymous(sizeof(Shared))), shared(*new (pages.data()) Shared) {}

void RunStart::begin(int index, std::int64_t step) {
  if (hasOpened())
    return;
  shared.index = index;
  shared.step = step;
}

void RunStart::noteOpened(const FileIdentity &log) {
  shared.logDevice = log.known ? log.device : 0;
  shared.logInode = log.known ? log.inode : 0;
  shared.isOpen = 1;
}

bool RunStart::owns(const FileIdentity &log) const {
  return hasOpened() && log.known && log.newName.empty() && log.device == shared.logDevice &&
         log.inode == shared.logInode;
}

std::vector<SavedStep> RunStart::candidates(const std::string &root,
                                            const std::vector<SavedStep> &before) {
  if (!isKnown && shared.index >= 0)
    first = before.at(static_cast<std::size_t>(shared.index));
  isKnown = true;
  std::vector<SavedStep> found;
  for (const SavedStep &saved : CheckpointRoot(FileSystem::real(), root).saved())
    if (saved.step > shared.step)
      found.push_back(saved);
  if (first)
    found.push_back(*first);
  return found;
}

void RunStart::lock(const std::string &root) {
  if (rootLock)
    return;
  Descriptor folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && folder.lockAgainstOtherRuns(root))
    rootLock = std::move(folder);
}

} // namespace fsdp::rt
