#include "runtime/kernels/Kernels.h"
#include "test/unit/cuda/DeviceKernels.h"

#include <algorithm>

using namespace fsdp::rt;

namespace {

template <class T, class Id> struct Kinds {
  using Element = T;
  using Label = Id;
};
template <class K> class LossKernels : public DeviceKernels {};
using All = ::testing::Types<Kinds<float, std::int32_t>, Kinds<float, std::int64_t>,
                             Kinds<bf16, std::int32_t>, Kinds<bf16, std::int64_t>>;
TYPED_TEST_SUITE(LossKernels, All);

template <class Id>
std::vector<Id> below(std::size_t limit, std::size_t count, std::mt19937 &random) {
  std::vector<Id> values(count);
  for (Id &value : values)
    value = static_cast<Id>(random() % limit);
  return values;
}

TYPED_TEST(LossKernels, CrossEntropyIsTheCpus) {
  using T = typename TypeParam::Element;
  using Label = typename TypeParam::Label;
  // Odd numbers of classes: each row starts at another address within 16 bytes.
  for (const LogitRows &shape : {LogitRows{1, 1}, LogitRows{5, 3}, LogitRows{0, 10},
                                 LogitRows{9, 257}, LogitRows{4, 1024}, LogitRows{3, 5003}})
    for (std::size_t offset : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.classes << " + " << offset);
      const std::size_t n = shape.rows * shape.classes;
      const Floats logits = rounded<T>(normal(n, this->random, -1, 4)),
                   upstream = normal(shape.rows, this->random);
      const std::vector<Label> labels = below<Label>(shape.classes, shape.rows, this->random);
      Floats losses(shape.rows), sums(shape.rows), gradients(n);
      kernels::crossEntropy(shape, logits.data(), labels.data(), losses.data(), sums.data());
      kernels::crossEntropyGrad(shape, logits.data(), labels.data(), sums.data(), upstream.data(),
                                gradients.data());
      Device<T> logits_(logits, offset), gradients_(n);
      Device<Label> labels_(labels);
      Device<float> losses_(shape.rows), sums_(shape.rows), upstream_(upstream);
      OK(cross_entropy(shape, logits_, labels_, losses_, sums_, this->stream));
      expectClose<float>(losses_.floats(), losses, "losses");
      expectClose<float>(sums_.floats(), sums, "log sum exp");
      Device<float> alone(shape.rows);
      OK(cross_entropy(shape, logits_, labels_, alone, this->stream));
      EXPECT_EQ(alone.floats(), losses_.floats());
      // What two nearly equal numbers leave of each other, at the label, is as exact as their sum.
      Device<float> exact(sums);
      OK(cross_entropy_grad(shape, logits_, labels_, exact, upstream_, gradients_, this->stream));
      expectNear(gradients_.floats(), gradients, sizeof(T) == 2 ? 0x1p-8 : 1e-5, 1e-4, "gradients");
      OK(cross_entropy_grad(shape, logits_, labels_, exact, upstream_, logits_, this->stream));
      EXPECT_EQ(logits_.floats(), gradients_.floats()) << "in place";
    }
}

/// The same bits as the kernels of the loss and of the gradient alone: rows that a block keeps in
/// shared memory, rows that it has too little for, rows that are read element by element, as the
/// gradient lies otherwise, and padding.
TYPED_TEST(LossKernels, LossesWithGradientsAreThoseAlone) {
  using T = typename TypeParam::Element;
  using Label = typename TypeParam::Label;
  struct Case {
    LogitRows shape;
    std::int64_t classes;
    int compute = 90; // 86: blocks have 99 KiB of shared memory
  };
  const std::size_t many = 104 * 1024 / sizeof(T);
  for (const auto &[shape, classes, compute] :
       {Case{{1, 1}, 1}, Case{{5, 3}, 2}, Case{{0, 10}, 10}, Case{{9, 257}, 250},
        Case{{4, 1024}, 1021}, Case{{3, 5}, 0}, Case{{2, many}, std::int64_t(many) - 13, 86}})
    for (std::size_t offset : {0, 1}) {
#ifdef FSDP_CUDA_EMULATOR
      emulator::settings().compute = compute;
#endif
      if (offset && compute == 86)
        continue;
      SCOPED_TRACE(::testing::Message()
                   << shape.rows << " x " << shape.classes << " of " << classes << " + " << offset);
      const std::size_t n = shape.rows * shape.classes;
      const Floats logits = normal(n, this->random, -1, 4);
      std::vector<Label> labels =
          below<Label>(std::max<std::size_t>(std::size_t(classes), 1), shape.rows, this->random);
      Device<T> logits_(logits), alone(n), both(n), elsewhere(n, offset);
      Device<float> upstream(normal(shape.rows, this->random)), losses(shape.rows),
          sums(shape.rows), picked(shape.rows), losses2(shape.rows), sums2(shape.rows),
          picked2(shape.rows);
      if (classes > 0) {
        Device<Label> labels_(labels);
        OK(cross_entropy(shape, logits_, labels_, losses, sums, this->stream));
        OK(cross_entropy_grad(shape, logits_, labels_, sums, upstream, alone, this->stream));
        for (Device<T> *to : {&both, &elsewhere}) {
          OK(cross_entropy(shape, logits_, labels_, upstream, losses2, sums2, *to, this->stream));
          if (to == &both || offset == 0) {
            EXPECT_EQ(to->floats(), alone.floats());
            EXPECT_EQ(losses2.floats(), losses.floats());
            EXPECT_EQ(sums2.floats(), sums.floats());
          } else { // another order of sums
            expectNear(to->floats(), alone.floats(), sizeof(T) == 2 ? 0x1p-7 : 1e-5, 1e-4, "apart");
            expectClose<float>(losses2.floats(), losses.floats(), "losses apart");
          }
        }
      }
      // Of a part that is all classes: the logarithm is that of the rounded sum.
      if (shape.rows > 1)
        labels[1] = Label(-1);
      if (classes == 0)
        std::fill(labels.begin(), labels.end(), Label(-1));
      Device<Label> labels_(labels);
      Device<std::int64_t> count(std::vector<std::int64_t>{classes});
      OK(partial_cross_entropy(shape, logits_, labels_, count, losses, sums, picked, this->stream));
      Floats logSumExp = sums.floats();
      const Floats tops = losses.floats();
      for (std::size_t r = 0; r < shape.rows; ++r)
        logSumExp[r] = std::log(logSumExp[r]) + tops[r];
      Device<float> base(logSumExp);
      OK(cross_entropy_grad(shape, logits_, labels_, base, upstream, count, alone, this->stream));
      OK(partial_cross_entropy(shape, logits_, labels_, count, upstream, losses2, sums2, picked2,
                               both, this->stream));
      expectNear(both.floats(), alone.floats(), sizeof(T) == 2 ? 0x1p-7 : 1e-5, 1e-4, "gradients");
      EXPECT_EQ(losses2.floats(), losses.floats());
      EXPECT_EQ(sums2.floats(), sums.floats());
      EXPECT_EQ(picked2.floats(), picked.floats());
      OK(partial_cross_entropy(shape, logits_, labels_, count, upstream, losses2, sums2, picked2,
                               logits_, this->stream));
      EXPECT_EQ(logits_.floats(), both.floats()) << "in place";
    }
}

/// The note of a kernel, found through the stream's workspace.
class Noted {
public:
  explicit Noted(StreamWorkspace &workspace) : workspace(workspace) {
    EXPECT_EQ(cudaMalloc(&workspace.fault, sizeof(BoundsError)), cudaSuccess);
    EXPECT_EQ(cudaMemset(workspace.fault, 0, sizeof(BoundsError)), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ~Noted() {
    EXPECT_EQ(cudaFree(workspace.fault), cudaSuccess);
    workspace.fault = nullptr;
  }
  void expect(unsigned count, BoundsError::Kind kind, std::uint64_t place, std::int64_t got,
              std::uint64_t limit) {
    BoundsError fault;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&fault, workspace.fault, sizeof fault, cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(fault.count, count);
    EXPECT_EQ(fault.kind, kind);
    EXPECT_EQ(fault.place, place);
    EXPECT_EQ(fault.got, got);
    EXPECT_EQ(fault.limit, limit);
  }

private:
  StreamWorkspace &workspace;
};

TYPED_TEST(LossKernels, ALabelOutOfRangeIsNoted) {
  using T = typename TypeParam::Element;
  using Label = typename TypeParam::Label;
  Noted noted(this->workspace);
  Device<T> logits(Floats{1, 2, 3, 4, 5, 6});
  Device<Label> good(std::vector<int>{2, 0}), labels(std::vector<int>{2, -3}),
      later(std::vector<int>{3, 0});
  Device<float> losses(2), sums(2);
  OK(cross_entropy({2, 3}, logits, good, losses, sums, this->stream));
  noted.expect(0, BoundsError::None, 0, 0, 0);
  OK(cross_entropy({2, 3}, logits, labels, losses, sums, this->stream));
  noted.expect(1, BoundsError::Label, 1, -3, 3);
  OK(cross_entropy({2, 3}, logits, later, losses, this->stream));
  noted.expect(2, BoundsError::Label, 1, -3, 3);
  Device<T> gradients(6);
  Device<float> upstream(Floats{1, 1});
  OK(cross_entropy({2, 3}, logits, later, upstream, losses, sums, gradients, this->stream));
  EXPECT_TRUE(std::isnan(losses.floats()[0]));
  noted.expect(3, BoundsError::Label, 1, -3, 3);
}

TYPED_TEST(LossKernels, AnIdOutOfRangeIsNoted) {
  using T = typename TypeParam::Element;
  using Id = typename TypeParam::Label;
  for (std::size_t width : {1, 8}) {
    Noted noted(this->workspace);
    Device<T> table(Floats(4 * width, 1)), out(3 * width);
    Device<Id> good(std::vector<int>{3, 0, 1}), ids(std::vector<int>{3, 0, 4});
    OK(embedding({3, 4, width}, table, good, out, this->stream));
    noted.expect(0, BoundsError::None, 0, 0, 0);
    OK(embedding({3, 4, width}, table, ids, out, this->stream));
    const Floats got = out.floats();
    EXPECT_TRUE(std::isnan(got[2 * width]));
    // One for each element or vector of the row.
    noted.expect(width == 8 && sizeof(T) == 4 ? 2 : 1, BoundsError::Id, 2, 4, 4);
  }
}

TYPED_TEST(LossKernels, ALabelOutOfRangeIsNaN) {
  using T = typename TypeParam::Element;
  using Label = typename TypeParam::Label;
  Device<T> logits(Floats{1, 2, 3, 4, 5, 6}), gradients(6);
  Device<Label> labels(std::vector<int>{2, 3}), negative(std::vector<int>{-1, 0});
  Device<float> losses(2), sums(2), upstream(Floats{1, 1});
  OK(cross_entropy({2, 3}, logits, labels, losses, sums, this->stream));
  EXPECT_TRUE(std::isfinite(losses.floats()[0]));
  EXPECT_TRUE(std::isnan(losses.floats()[1]));
  OK(cross_entropy({2, 3}, logits, negative, losses, sums, this->stream));
  EXPECT_TRUE(std::isnan(losses.floats()[0]));
  EXPECT_TRUE(std::isfinite(losses.floats()[1]));
  OK(cross_entropy_grad({2, 3}, logits, negative, sums, upstream, gradients, this->stream));
  const Floats got = gradients.floats();
  EXPECT_GT(*std::min_element(got.begin(), got.begin() + 3), 0) << "no column is the label's";
}

TYPED_TEST(LossKernels, LogitsFarApart) {
  using T = typename TypeParam::Element;
  const float infinity = std::numeric_limits<float>::infinity();
  Device<T> logits(Floats{-infinity, 200, -200, 0, -infinity, 0});
  Device<typename TypeParam::Label> labels(std::vector<int>{1, 0});
  Device<float> losses(2), sums(2);
  OK(cross_entropy({2, 3}, logits, labels, losses, sums, this->stream));
  EXPECT_EQ(losses.floats()[0], 0);
  EXPECT_EQ(sums.floats()[0], 200);
  EXPECT_NEAR(losses.floats()[1], std::log(2), 1e-6);
}

TYPED_TEST(LossKernels, PartsOfClassesAreTheCpus) {
  using T = typename TypeParam::Element;
  using Label = typename TypeParam::Label;
  // `classes` of the columns are no padding, which is infinite.
  struct Part {
    LogitRows shape;
    std::int64_t classes;
  };
  for (const auto &[shape, classes] : {Part{{1, 1}, 1}, Part{{5, 3}, 2}, Part{{9, 257}, 257},
                                       Part{{4, 1024}, 1021}, Part{{3, 5}, 0}}) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.classes << " of " << classes);
    const std::size_t n = shape.rows * shape.classes;
    Floats logits = rounded<T>(normal(n, this->random, -1, 4));
    const Floats upstream = normal(shape.rows, this->random);
    for (std::size_t i = 0; i < n; ++i)
      if (i % shape.classes >= std::size_t(classes))
        logits[i] = std::numeric_limits<float>::infinity();
    std::vector<Label> labels(shape.rows, Label(-1));
    for (std::size_t r = 0; r < shape.rows && classes; r += 2)
      labels[r] = Label(this->random() % std::size_t(classes));
    Floats top(shape.rows), sum(shape.rows), picked(shape.rows), gradients(n);
    kernels::partialCrossEntropy(shape, logits.data(), labels.data(), &classes, top.data(),
                                 sum.data(), picked.data());
    const Floats logSumExp(shape.rows, 11.0f);
    kernels::partialCrossEntropyGrad(shape, logits.data(), labels.data(), logSumExp.data(),
                                     upstream.data(), &classes, gradients.data());
    Device<T> logits_(logits), gradients_(n);
    Device<Label> labels_(labels);
    Device<std::int64_t> count_(1);
    Device<float> top_(shape.rows), sum_(shape.rows), picked_(shape.rows), upstream_(upstream),
        exact(logSumExp);
    Device<std::int64_t> first_(1);
    OK(shard_offset(IndexShard{0, 0, 1 - classes, 1}, first_, this->stream));
    EXPECT_EQ(first_.values(), std::vector<std::int64_t>{1 - classes});
    OK(shard_size(IndexShard{0, classes, classes, 0}, count_, this->stream));
    OK(partial_cross_entropy(shape, logits_, labels_, count_, top_, sum_, picked_, this->stream));
    EXPECT_EQ(top_.floats(), top);
    expectClose<float>(sum_.floats(), sum, "sums");
    EXPECT_EQ(picked_.floats(), picked);
    OK(cross_entropy_grad(shape, logits_, labels_, exact, upstream_, count_, gradients_,
                          this->stream));
    expectNear(gradients_.floats(), gradients, sizeof(T) == 2 ? 0x1p-8 : 1e-5, 1e-4, "gradients");
    OK(cross_entropy_grad(shape, logits_, labels_, exact, upstream_, count_, logits_,
                          this->stream));
    EXPECT_EQ(logits_.floats(), gradients_.floats()) << "in place";
  }
}

TYPED_TEST(LossKernels, PartsOfATableAreTheCpus) {
  using T = typename TypeParam::Element;
  using Id = typename TypeParam::Label;
  for (const std::size_t width : {1, 8}) {
    const EmbeddingShape shape{60, 5, width, /*partial=*/true};
    const Floats table = rounded<T>(normal(5 * width, this->random)),
                 dOut = rounded<T>(normal(60 * width, this->random));
    const std::vector<Id> ids = below<Id>(13, 60, this->random);
    std::vector<Id> own(60);
    const IndexShard part{60, 13, 5, 1};
    kernels::shardIndices(part, ids.data(), own.data());
    Floats out(60 * width), dTable(5 * width);
    kernels::embedding(shape, table.data(), own.data(), out.data());
    kernels::embeddingGrad(shape, own.data(), dOut.data(), dTable.data());
    Noted noted(this->workspace);
    Device<Id> ids_(ids), own_(60);
    Device<T> table_(table), out_(out.size()), dOut_(dOut);
    Device<float> dTable_(dTable.size());
    OK(shard_indices(part, ids_, own_, this->stream));
    EXPECT_EQ(own_.values(), own);
    OK(embedding(shape, table_, own_, out_, this->stream));
    EXPECT_EQ(out_.floats(), out);
    OK(embedding_grad(shape, own_, dOut_, dTable_.data(), this->stream));
    EXPECT_EQ(dTable_.floats(), dTable);
    noted.expect(0, BoundsError::None, 0, 0, 0);
  }
}

TYPED_TEST(LossKernels, AnIndexOutOfRangeIsNoted) {
  using Id = typename TypeParam::Label;
  Noted noted(this->workspace);
  Device<Id> ids(std::vector<int>{0, 13}), own(2);
  OK(shard_indices({2, 13, 5, 1}, ids, own, this->stream));
  EXPECT_EQ(own.values(), (std::vector<Id>{Id(-1), Id(5)}));
  noted.expect(1, BoundsError::Index, 1, 13, 13);
  if constexpr (std::is_signed_v<Id>) {
    Noted negative(this->workspace);
    Device<Id> below(std::vector<int>{-1, 7}), parts(2);
    OK(shard_indices({2, 13, 5, 1}, below, parts, this->stream));
    EXPECT_EQ(parts.values(), (std::vector<Id>{Id(5), Id(2)}));
    negative.expect(1, BoundsError::Index, 0, -1, 13);
  }
}

TYPED_TEST(LossKernels, EmbeddingIsTheCpus) {
  using T = typename TypeParam::Element;
  using Id = typename TypeParam::Label;
  // One block of owned rows and several, ids that are rare and ids that are all the same, more than
  // a block reads at once.
  for (const EmbeddingShape &shape :
       {EmbeddingShape{1, 1, 1}, EmbeddingShape{40, 7, 16}, EmbeddingShape{700, 600, 8},
        EmbeddingShape{300, 257, 5}, EmbeddingShape{300, 256, 8}, EmbeddingShape{40, 512, 5},
        EmbeddingShape{0, 9, 8}, EmbeddingShape{530, 1, 24}, EmbeddingShape{2300, 600, 8}})
    for (std::size_t offset : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << shape.ids << " of " << shape.vocabulary << " x "
                                        << shape.width << " + " << offset);
      const Floats table = rounded<T>(normal(shape.vocabulary * shape.width, this->random)),
                   dOut = rounded<T>(normal(shape.ids * shape.width, this->random));
      const std::vector<Id> ids = below<Id>(shape.vocabulary, shape.ids, this->random);
      Floats out(dOut.size()), dTable(table.size());
      kernels::embedding(shape, table.data(), ids.data(), out.data());
      kernels::embeddingGrad(shape, ids.data(), dOut.data(), dTable.data());
      Device<T> table_(table, offset), out_(out.size()), dOut_(dOut, offset);
      Device<Id> ids_(ids);
      Device<float> dTable_(dTable.size());
      OK(embedding(shape, table_, ids_, out_, this->stream));
      EXPECT_EQ(out_.floats(), out);
      OK(embedding_grad(shape, ids_, dOut_, dTable_.data(), this->stream));
      EXPECT_EQ(dTable_.floats(), dTable) << "sums in the order of places, to the bit";
      Device<T> rounded_(dTable.size());
      OK(embedding_grad(shape, ids_, dOut_, rounded_.data(), this->stream));
      EXPECT_EQ(rounded_.floats(), rounded<T>(dTable));
    }
}

TYPED_TEST(LossKernels, AnIdOutOfRangeIsNaN) {
  using T = typename TypeParam::Element;
  const EmbeddingShape shape{3, 2, 8};
  Device<T> table(Floats(16, 1.0f)), out(24);
  Device<typename TypeParam::Label> ids(std::vector<int>{2, 1, -1});
  Device<float> dTable(16);
  OK(embedding(shape, table, ids, out, this->stream));
  const Floats got = out.floats();
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(std::isnan(got[i]), i / 8 != 1) << i;
  Device<T> dOut(Floats(24, 1.0f));
  OK(embedding_grad(shape, ids, dOut, dTable.data(), this->stream));
  EXPECT_EQ(dTable.floats(), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
}

} // namespace
