//===- Driver.h - main of a generated program -------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_DRIVER_H
#define FSDP_RUNTIME_TRAIN_DRIVER_H

#include "runtime/program/Program.h"

#ifdef FSDP_RECORD
#include <cstdio>
#endif

namespace fsdp::rt {

#ifndef FSDP_RECORD

/// Trains: parses the command line, selects the plan for the number of ranks, checks the files,
/// starts the ranks, and runs the training plan once per step. Returns the exit status (see
/// ExitStatus).
int runTraining(Plans plans, int argc, char **argv);

#else

/// Prints the actions of every segment after a line `segment NAME`; with several plans, each after
/// a line `plan MESH`. `Recording` is the recording context of the program's target.
template <class Recording = Context> int runTraining(Plans plans, int argc, char **argv) {
  if (argc > 1) {
    std::fprintf(stderr,
                 "%s: error: got '%s', and a program compiled with --record takes no options\n",
                 plans[0]->name, argv[1]);
    return 2;
  }
  for (const Program *program : plans) {
    Recording c(program->axes, program->streams, program->communicators);
    if (plans.size() > 1) {
      std::fprintf(c.log(), "plan ");
      for (std::size_t i = 0; i < program->axes.size(); ++i)
        std::fprintf(c.log(), "%s%s=%d", i ? "," : "", program->axes[i].name,
                     program->axes[i].size);
      std::fprintf(c.log(), "\n");
    }
    for (const Segment &segment : program->segments) {
      std::fprintf(c.log(), "segment %s\n", segment.name);
      segment.run(c);
    }
  }
  return 0;
}

#endif

/// The same for a program with one plan.
inline int runTraining(const Program &program, int argc, char **argv) {
  const Program *const plans[] = {&program};
  return runTraining(Plans(plans), argc, argv);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_DRIVER_H
