//===- Case.h - what a random program is given, and should leave ---*- C++ -*-===//
//
// Written by emitted-cases, which has the compiler and the interpreter, and read by the emitted
// programs, which have neither: plain data, in the byte order of the machine.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMITTED_CASE_H
#define TEST_EMITTED_CASE_H

#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

namespace fsdp::emitted {

/// A tensor, or a number that is logged.
struct Numbers {
  std::string name;
  std::vector<double> values;
};

/// Numbers of the interpreter, and how far from each a program may be. `loose` is `tight` where no
/// 16-bit float is rounded.
struct Expected {
  std::string name;
  std::vector<double> values, tight, loose;
};

struct Case {
  std::uint64_t seed = 0;
  std::int64_t totalSteps = 0; ///< where learning rates end
  std::int64_t evaluated =
      0;                    ///< how many samples of the batch count in the evaluation, at most all
  std::int64_t samples = 0; ///< of the data set
  std::vector<Numbers> inputs;                ///< the data set, sample by sample
  std::vector<Numbers> parameters;            ///< before the first step
  std::vector<std::vector<Expected>> outputs; ///< two steps of training, one evaluation
  std::vector<Expected> tensors; ///< afterwards: "parameter.what", `what` as in `Machine::get`
};

/// Writes values, or reads them in the same order.
class CaseFile {
public:
  CaseFile(const std::string &path, bool writes)
      : stream(path, std::ios::binary | (writes ? std::ios::out | std::ios::trunc : std::ios::in)),
        writes(writes) {}
  explicit operator bool() const { return static_cast<bool>(stream); }
  bool atEnd() { return stream.peek() == std::fstream::traits_type::eof(); }

  void pass(Case &c) {
    pass(c.seed), pass(c.totalSteps), pass(c.evaluated), pass(c.samples);
    pass(c.inputs), pass(c.parameters), pass(c.outputs), pass(c.tensors);
  }

private:
  template <class T> std::enable_if_t<std::is_arithmetic_v<T>> pass(T &value) {
    bytes(&value, sizeof value);
  }
  template <class T> std::size_t sizeOf(const T &list) {
    std::uint64_t size = list.size();
    pass(size);
    return size;
  }
  void pass(std::string &text) {
    text.resize(sizeOf(text));
    bytes(text.data(), text.size());
  }
  void pass(std::vector<double> &list) {
    list.resize(sizeOf(list));
    bytes(list.data(), list.size() * sizeof(double));
  }
  template <class T> void pass(std::vector<T> &list) {
    list.resize(sizeOf(list));
    for (T &item : list)
      pass(item);
  }
  void pass(Numbers &numbers) { pass(numbers.name), pass(numbers.values); }
  void pass(Expected &e) { pass(e.name), pass(e.values), pass(e.tight), pass(e.loose); }
  void bytes(void *data, std::size_t size) {
    if (writes)
      stream.write(static_cast<const char *>(data), static_cast<std::streamsize>(size));
    else
      stream.read(static_cast<char *>(data), static_cast<std::streamsize>(size));
  }

  std::fstream stream;
  bool writes;
};

} // namespace fsdp::emitted

#endif // TEST_EMITTED_CASE_H
