//===- Descriptor.h - an owned file descriptor ------------------*- C++ -*-===//
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <string>
#include <utility>

namespace base {

/// Owns a file descriptor, or none.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() { reset(); }

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// Closes the descriptor, if there is one; does not change errno.
  void reset();

  /// Locks the file against other runs until all copies of the descriptor are closed. Returns false
  /// if another run has locked it. On a file system without locks it prints a note about `name` and
  /// returns true.
  bool lockAgainstOtherRuns(const std::string &name) const;

private:
  int number = -1;
};

} // namespace base

#endif // BASE_DESCRIPTOR_H
