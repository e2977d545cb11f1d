#include "base/Error.h"

#include "base/PrintableText.h"

#include <cstdarg>
#include <cstdio>

namespace base {

Error::Error(const std::string &message, int status, const char *file, int line)
    : std::runtime_error(printableMessage(message)), status_(status), file_(file), line_(line) {}

Error Error::at(int rank, const std::string &action) const {
  Error placed(*this);
  if (placed.rank_ < 0)
    placed.rank_ = rank;
  if (placed.action_.empty())
    placed.action_ = action;
  return placed;
}

std::string Error::describe() const {
  std::string text;
  if (rank_ >= 0 && !refusal_)
    text += "rank " + std::to_string(rank_);
  if (!action_.empty())
    text += (text.empty() ? "'" : ", '") + action_ + "'";
  return text.empty() ? what() : text + ": " + what();
}

std::string format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(length > 0 ? length : 0, '\0');
  if (length > 0)
    std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

} // namespace base
