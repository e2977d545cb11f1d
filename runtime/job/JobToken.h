//===- JobToken.h - who may take part in a job over TCP ---------------------===//
#ifndef FSDP_RUNTIME_JOB_JOBTOKEN_H
#define FSDP_RUNTIME_JOB_JOBTOKEN_H

#include "runtime/job/Launcher.h"

#include <string>

namespace fsdp::rt {

/// The secret that all ranks of a job know: FSDP_JOB_TOKEN, or what stands in the file
/// FSDP_JOB_TOKEN_FILE, without the white space around it. Empty where neither is set. Errors: both
/// are; one that is too short or too long; a file that others than its user can read.
std::string jobToken(const Environment &environment);

/// Throws an Error where ranks would meet at an address of the network with nothing that keeps
/// strangers away.
void requireToken(const LaunchEnvironment &launched, const std::string &token, bool trustNetwork);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_JOBTOKEN_H
