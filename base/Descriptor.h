//===- Descriptor.h - an open file or nothing --------------------*- C++ -*-===//
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <string>
#include <utility>

namespace base {

/// A file descriptor or nothing; closed with the object.
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
  /// Closes what is open; errno stays.
  void reset();

  /// Locks the file against other runs until all copies of the descriptor are closed. False:
  /// another run has locked it. Where the file system has no locks: true, with a note that calls it
  /// `name`.
  bool lockAgainstOtherRuns(const std::string &name) const;

private:
  int number = -1;
};

} // namespace base

#endif // BASE_DESCRIPTOR_H
