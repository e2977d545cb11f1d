//===- LibrarySources.h - sources that authors of programs do not edit -----===//

#ifndef DSL_LIBRARYSOURCES_H
#define DSL_LIBRARYSOURCES_H

#include "frontend/ModelValue.h"
#include <string_view>

namespace fsdp::dsl {

/// Declares the sources in the folder of `where` as those of a library, in a static object of the
/// library. Errors there are caused by the sizes that the program received: messages name the
/// program, not the line of the library.
class LibrarySources {
public:
  explicit LibrarySources(frontend::Where where = frontend::Where::here());
  /// Whether `file` is in the folder of such a library.
  static bool contain(std::string_view file);
};

} // namespace fsdp::dsl

#endif // DSL_LIBRARYSOURCES_H
