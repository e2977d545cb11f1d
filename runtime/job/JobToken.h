//===- JobToken.h - the secret of a job over TCP --------------------------===//
#ifndef FSDP_RUNTIME_JOB_JOBTOKEN_H
#define FSDP_RUNTIME_JOB_JOBTOKEN_H

#include "runtime/job/Launcher.h"

#include <string>

namespace fsdp::rt {

/// The secret of a job: FSDP_JOB_TOKEN, or the content of the file FSDP_JOB_TOKEN_FILE without
/// surrounding white space. Empty if neither is set. Errors: both are set; the token is too short
/// or too long; other users can read the file.
std::string jobToken(const Environment &environment);

/// Throws an Error if ranks would connect over the network without a token.
void requireToken(const LaunchEnvironment &launched, const std::string &token, bool trustNetwork);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_JOBTOKEN_H
