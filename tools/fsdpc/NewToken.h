//===- NewToken.h - tokens of jobs on several machines ----------*- C++ -*-===//

#ifndef TOOLS_FSDPC_NEWTOKEN_H
#define TOOLS_FSDPC_NEWTOKEN_H

namespace CLI {
class App;
}

namespace fsdpc {

/// Adds --new-token, which prints 128 random bits as a word and ends the parse with CLI::Success.
/// It throws Failure if the system has no random bits.
void declareNewToken(CLI::App &app);

} // namespace fsdpc

#endif // TOOLS_FSDPC_NEWTOKEN_H
