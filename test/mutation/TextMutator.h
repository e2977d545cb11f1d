//===- TextMutator.h - random changes of IR text ----------------*- C++ -*-===//

#ifndef TEST_MUTATION_TEXTMUTATOR_H
#define TEST_MUTATION_TEXTMUTATOR_H

#include <random>
#include <string>
#include <vector>

namespace fsdp::mutation {

/// The modules in `text`: what `// -----` and `//--- NAME` part, without comments.
std::vector<std::string> splitModules(const std::string &text);

/// `text` with one to three changes: tokens deleted, doubled, swapped, replaced by others of their
/// kind or by extreme numbers; types and shapes changed; lines, and whole ops with their regions,
/// deleted, doubled, moved, or taken from `other`.
std::string mutateText(const std::string &text, const std::string &other, std::mt19937 &random);

} // namespace fsdp::mutation

#endif // TEST_MUTATION_TEXTMUTATOR_H
