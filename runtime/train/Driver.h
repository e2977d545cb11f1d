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
/// a line `plan MESH`; where ranks run different programs, each after a line `role NAME`.
/// `Recording` is the recording context of the program's target.
template <class Recording = Context> int runTraining(Plans plans, int argc, char **argv) {
  if (argc > 1) {
    std::fprintf(stderr,
                 "%s: error: got '%s', and a program compiled with --record takes no options\n",
                 plans[0]->name, argv[1]);
    return 2;
  }
  for (const Program *plan : plans) {
    Recording c(plan->axes, plan->streams, plan->communicators);
    if (plans.size() > 1) {
      std::fprintf(c.log(), "plan ");
      for (std::size_t i = 0; i < plan->axes.size(); ++i)
        std::fprintf(c.log(), "%s%s=%d", i ? "," : "", plan->axes[i].name, plan->axes[i].size);
      std::fprintf(c.log(), "\n");
    }
    const auto recordProgram = [&c](const Program &program) {
      for (const Segment &segment : program.segments) {
        std::fprintf(c.log(), "segment %s\n", segment.name);
        segment.run(c);
      }
    };
    if (plan->programs.empty())
      recordProgram(*plan);
    for (const Program *program : plan->programs) {
      std::fprintf(c.log(), "role %s\n", program->role);
      recordProgram(*program);
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
