//===- Registered.h - the programs of a binary --------------------*- C++ -*-===//

#ifndef TEST_EMITTED_REGISTERED_H
#define TEST_EMITTED_REGISTERED_H

#include "runtime/program/Program.h"

#include <map>

namespace fsdp::emitted {

/// A program that emitted-cases wrote in the place of a `main`, known by the seed of its case.
struct Registered {
  Registered(std::uint64_t seed, const rt::Program &program) { all()[seed] = &program; }
  static std::map<std::uint64_t, const rt::Program *> &all();
};

} // namespace fsdp::emitted

#endif // TEST_EMITTED_REGISTERED_H
