//===- LibrarySources.cpp -------------------------------------------------===//

#include "dsl/LibrarySources.h"

#include <algorithm>
#include <vector>

namespace fsdp::dsl {

/// "/usr/src/models" of "/usr/src/models/llama.cpp".
static std::string_view folderOf(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  return slash == file.npos ? std::string_view() : file.substr(0, slash);
}

static std::vector<std::string_view> &folders() {
  static std::vector<std::string_view> all;
  return all;
}

LibrarySources::LibrarySources(frontend::Where where) { folders().push_back(folderOf(where.file)); }

bool LibrarySources::contain(std::string_view file) {
  const std::vector<std::string_view> &all = folders();
  return std::find(all.begin(), all.end(), folderOf(file)) != all.end();
}

} // namespace fsdp::dsl
