#include "base/EnvironmentFlag.h"
#include "base/Error.h"
#include "base/PrintableText.h"

#include <cstring>

using namespace base;

std::optional<bool> base::environmentFlag(const char *name, const char *effect,
                                          Variables variables) {
  const char *value = variables(name);
  if (!value || !*value)
    return std::nullopt;
  if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0)
    throw Error(format("environment variable '%s' got '%s', expected 0 or 1%s%s", name,
                       printable(value).c_str(), *effect ? ": 1 " : "", effect),
                kExitBadCommandLine)
        .byAll();
  return *value == '1';
}
