//===- Driver.h - main of a generated program -------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_DRIVER_H
#define FSDP_RUNTIME_TRAIN_DRIVER_H

#include "runtime/program/Program.h"

#ifdef FSDP_RECORD
#include <cstdio>
#endif

namespace fsdp::rt {

#ifndef FSDP_RECORD

/// Trains: reads the command line, checks the files, starts the ranks, and runs
/// the train walk once a step. Returns the exit status (see ExitStatus).
int runTraining(const Program &program, int argc, char **argv);

#else

/// Writes down the actions of every segment, each after a line `segment NAME`. Its context is
/// the recording one of the program's target.
template <class Recording = Context>
int runTraining(const Program &program, int argc, char **argv) {
  if (argc > 1) {
    std::fprintf(stderr,
                 "%s: error: got '%s', and a program compiled with --record takes no options\n",
                 program.name, argv[1]);
    return 2;
  }
  Recording c(program.axes, program.streams, program.communicators);
  for (const Segment &segment : program.segments) {
    std::fprintf(c.log(), "segment %s\n", segment.name);
    segment.run(c);
  }
  return 0;
}

#endif

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_DRIVER_H
