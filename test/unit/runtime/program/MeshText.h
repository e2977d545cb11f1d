//===- MeshText.h - a mesh as a test's command line spells it ---------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_MESHTEXT_H
#define FSDP_TEST_UNIT_RUNTIME_MESHTEXT_H

#include "runtime/program/Mesh.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

/// "name=size,name=size", with "@2.0.1" behind it the ranks in mesh order, and communicators over
/// it: the whole mesh first, then every other list of one or two axes, in both orders.
class MeshText {
public:
  explicit MeshText(const std::string &whole) {
    const std::string text = whole.substr(0, whole.find('@'));
    for (std::size_t at = text.size(); at < whole.size();
         at = std::min(whole.find('.', at + 1), whole.size()))
      order_.push_back(std::atoi(whole.c_str() + at + 1));
    names_.reserve(8);
    for (std::size_t at = 0; at < text.size();) {
      std::size_t equals = text.find('=', at), comma = std::min(text.find(',', at), text.size());
      names_.push_back(text.substr(at, equals - at));
      axes_.push_back({names_.back().c_str(), std::atoi(text.c_str() + equals + 1)});
      at = comma + 1;
    }
    communicators_.push_back({"all axes", {}});
    const int n = static_cast<int>(axes_.size());
    for (int a = 0; a < n; ++a)
      communicators_[0].axes.axis[communicators_[0].axes.count++] = a;
    for (int a = 0; a < n && n > 1; ++a) {
      communicators_.push_back({axes_[a].name, {a}});
      for (int b = 0; b < n; ++b)
        if (b != a)
          communicators_.push_back({"pair", {a, b}});
    }
  }
  MeshText(const MeshText &) = delete;

  fsdp::rt::Table<fsdp::rt::MeshAxis> axes() const { return {axes_.data(), axes_.size()}; }
  fsdp::rt::Table<int> order() const { return {order_.data(), order_.size()}; }
  fsdp::rt::Table<fsdp::rt::CommunicatorSpec> communicators() const {
    return {communicators_.data(), communicators_.size()};
  }

private:
  std::vector<std::string> names_;
  std::vector<fsdp::rt::MeshAxis> axes_;
  std::vector<int> order_;
  std::vector<fsdp::rt::CommunicatorSpec> communicators_;
};

#endif // FSDP_TEST_UNIT_RUNTIME_MESHTEXT_H
