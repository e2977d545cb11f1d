//===- RendezvousFile.h - where ranks of one machine find their memory ------===//
#ifndef FSDP_RUNTIME_JOB_RENDEZVOUSFILE_H
#define FSDP_RUNTIME_JOB_RENDEZVOUSFILE_H

#include "base/Error.h"
#include "runtime/job/Process.h"
#include "runtime/job/RunIdentity.h"

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// A small file in /dev/shm by which the first rank tells the others where its memory file is open.
/// The memory itself has no name, so that nothing of its size stays behind and the size of /dev/shm
/// does not limit the arenas. Anybody can write into that folder: a file is believed only if it is
/// a plain file of this user that nobody else can write or read.
struct RendezvousFile {
  ProcessIdentity creator;
  int descriptor = -1; ///< of the creator: its memory file
  std::uint64_t bytes = 0;
  RunIdentity identity; ///< what the creator was started with

  /// The path for a job's key; different keys have different ones.
  static std::string pathFor(const std::string &key);

  enum Found { Absent, Incomplete, Whole };
  /// Reads the file at `path`. Errors: it is not to be trusted.
  static Found read(const std::string &path, RendezvousFile &file);
  /// Writes this to `path`, which must not exist: one that a process left that is gone is removed.
  /// Errors: one of a job that is starting just now, one that is not to be trusted.
  void publish(const std::string &path) const;
  /// Removes this user's rendezvous files whose processes are gone: they were killed while their
  /// ranks met. Files that are not to be trusted stay.
  static void removeStale();
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_RENDEZVOUSFILE_H
