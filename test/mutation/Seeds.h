//===- Seeds.h - how long a mutator runs, and from where --------*- C++ -*-===//
//
// FSDP_MUTANTS=N runs N mutants; without it, each check runs a tenth of those of --all.
// FSDP_MUTATION_SEED=S begins at another seed. Each mutant depends on seed and number alone, so
// that one is repeated by its number.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_MUTATION_SEEDS_H
#define TEST_MUTATION_SEEDS_H

#include "test/Extent.h"
#include <cstdint>
#include <cstdlib>
#include <random>

namespace fsdp::mutation {

inline int64_t numberFrom(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

inline int64_t getNumMutants(int64_t all) {
  return numberFrom("FSDP_MUTANTS", test::casesOf(all / 10, all));
}

/// The random numbers of mutant `number`.
inline std::mt19937 randomFor(int64_t number) {
  std::seed_seq seed{numberFrom("FSDP_MUTATION_SEED", 1), number};
  return std::mt19937(seed);
}

} // namespace fsdp::mutation

#endif // TEST_MUTATION_SEEDS_H
