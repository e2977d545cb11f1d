//===- NewToken.cpp -------------------------------------------------------===//

#include "tools/fsdpc/NewToken.h"

#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/Output.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace fsdpc {

static std::string newToken() {
  unsigned char bits[16];
  if (getentropy(bits, sizeof bits) != 0)
    throw Failure(std::string("cannot read random bits: ") + std::strerror(errno));
  return llvm::toHex(bits, /*LowerCase=*/true);
}

void declareNewToken(CLI::App &app) {
  app.add_flag_callback(
         "--new-token",
         [] {
           llvm::outs() << newToken() << "\n";
           finishPrinting(llvm::outs());
           throw CLI::Success();
         },
         "print a new token for jobs on several machines (FSDP_JOB_TOKEN), and exit")
      ->disable_flag_override()
      ->configurable(false);
}

} // namespace fsdpc
