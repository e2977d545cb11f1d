//===- ErrorReport.h - errors that a process prints ---------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_JOB_ERRORREPORT_H
#define FSDP_RUNTIME_JOB_ERRORREPORT_H

#include "base/Error.h"

namespace fsdp::rt {

/// Prints `error: ...` for an error before any rank exists (command line, files) and returns its
/// status.
int report(const base::Error &error);

/// The same for an error that every rank of a launcher's job finds: rank `first` prints it, the
/// others print a note if the launcher has not ended them by then. The text of `error` is empty on
/// ranks that end only because of `first`.
int reportByFirst(const base::Error &error, int rank, int first = 0);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_ERRORREPORT_H
