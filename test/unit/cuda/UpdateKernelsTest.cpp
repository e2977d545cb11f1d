#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/Optimizer.h"
#include "test/unit/cuda/DeviceKernels.h"
#include "test/unit/cuda/TestRules.h"

#include <algorithm>
#include <cstring>
#include <memory>

using namespace fsdp::rt;

namespace {

class UpdateKernels : public DeviceKernels {};

/// A flat unit of seven members, with and without decay, of which a rank holds `count` elements.
struct Unit {
  Parameter members[7];
  Storage storage;
  std::vector<UpdateSetting> settings; ///< separate rates for some members

  Unit(Layout layout, std::size_t count) {
    const std::size_t offsets[] = {0, 10, 11, 300, 5000, 5001, 9007};
    for (std::size_t m = 0; m < 7; ++m) {
      const std::size_t end = m < 6 ? offsets[m + 1] : 9100;
      const Shape shape{std::int64_t(end - offsets[m])};
      members[m] = {"p", nullptr, shape, shape, offsets[m], Initializer::zeros(), m % 2 == 0};
    }
    storage = {"unit", layout, {}, 0, 0, 9100, 100, Buffer(), {}, Table<Parameter>(members)};
    storage.shard.count = count;
    settings.resize(107);
    for (std::size_t m = 0; m < 7; ++m)
      settings[100 + m] = {m % 4 == 3 ? 1.0f : 0.25f * static_cast<float>(m), m % 3 == 0};
  }
};

constexpr Layout kLayouts[] = {Layout::Flat, Layout::Dimension};

struct Operands {
  Floats p, g, m, v;
  StepState state{};

  Operands(std::size_t count, std::mt19937 &random)
      : p(normal(count, random)), g(normal(count, random)), m(normal(count, random)),
        v(normal(count, random)) {
    for (float &x : v)
      x = x * x;
    state.updates = 3;
  }
};

/// The rules of TestRules.h on the host; a null `scale` means 1.
void descendOnHost(ShardOf shard, Operands &o, float lr, const float *scale) {
  const auto part = [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
    const float decay = setting.decays ? kTestDecay : 0.0f, rate = lr * setting.rateScale;
    for (std::size_t i = begin; i < end; ++i)
      o.p[i] -= rate * (o.g[i] * (scale ? *scale : 1.0f) + decay * o.p[i]);
  };
  kernels::forEachUpdatePart(shard, part);
}

void averageOnHost(ShardOf shard, Operands &o, float lr, const float *scale, std::int64_t count) {
  const float factor = static_cast<float>(1 / double(count));
  const auto part = [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
    const float rate = lr * setting.rateScale;
    for (std::size_t i = begin; i < end; ++i) {
      o.m[i] = (o.m[i] + o.g[i] * (scale ? *scale : 1.0f)) * factor;
      o.v[i] = o.m[i] * o.v[i];
      o.p[i] -= rate * o.v[i] + (setting.decays ? kTestDecay : 0.0f) * o.p[i];
    }
  };
  kernels::forEachUpdatePart(shard, part);
}

TEST_F(UpdateKernels, ARuleWithStatesIsAppliedToEachElement) {
  for (Layout layout : kLayouts)
    for (std::size_t count : {3040, 9104, 1})
      for (int coordinate : {0, 2})
        for (bool deferred : {false, true})
          for (std::size_t offset : {0, 1}) {
            const Unit unit(layout, count);
            const ShardOf shard{&unit.storage, coordinate,
                                coordinate ? unit.settings.data() : nullptr};
            Operands o(count, random);
            const float lr = 0.01f, scale = 0.5f;
            Device<float> p(o.p, offset), g(o.g), m(o.m), v(o.v), lr_(Floats{lr}),
                scale_(Floats{scale});
            Device<bool> ok(std::vector<int>{1});
            Device<StepState> state(std::vector<StepState>{o.state});
            Device<std::int32_t> bad(std::vector<std::int32_t>{-1});
            // Once with a scale, once without.
            for (const float *by : {static_cast<const float *>(scale_), (const float *)nullptr})
              OK(average(shard, deferred, g, lr_, by, ok, state, p, m, v, bad, stream));
            for (const float *by : {&scale, (const float *)nullptr})
              averageOnHost(shard, o, lr, by, deferred ? 3 : 4);
            EXPECT_EQ(p.floats(), o.p);
            EXPECT_EQ(m.floats(), o.m);
            EXPECT_EQ(v.floats(), o.v);
            EXPECT_EQ(bad.values()[0], -1);
          }
}

// Shards of units with other members, settings and sizes, more pieces than one kernel takes.
TEST_F(UpdateKernels, AGroupUpdatesEachShardAsAlone) {
  const Unit units[] = {{Layout::Flat, 9104},
                        {Layout::Dimension, 1},
                        {Layout::Flat, 3040},
                        {Layout::Dimension, 8193}};
  const bool scaled[] = {true, false, true, false};
  std::vector<Operands> alone;
  ShardUpdates<3> group{};
  std::vector<std::unique_ptr<Device<float>>> kept;
  const auto keep = [&](const Floats &values, std::size_t offset) -> float * {
    return kept.emplace_back(std::make_unique<Device<float>>(values, offset))->data();
  };
  const float lr = 0.01f;
  Device<float> lr_(Floats{lr});
  Device<bool> ok(std::vector<int>{1});
  Device<std::int32_t> bad(std::vector<std::int32_t>{-1});
  for (int u = 0; u < 4; ++u) {
    alone.emplace_back(units[u].storage.shard.count, random);
    Operands &o = alone.back();
    const ShardOf shard{&units[u].storage, u % 2, scaled[u] ? units[u].settings.data() : nullptr};
    float *gradient = keep(o.g, 0), *parameter = keep(o.p, u == 2), *m = keep(o.m, 0),
          *v = keep(o.v, 0);
    group.shards[u] = {shard, gradient, {parameter, m, v}};
    averageOnHost(shard, o, lr, nullptr, 4);
  }
  Device<StepState> state(std::vector<StepState>{alone.front().state});
  group.count = 4;
  group.lr = lr_, group.ok = ok, group.state = state, group.firstBad = bad;
  OK(average(group, stream));
  for (int u = 0; u < 4; ++u) {
    EXPECT_EQ(kept[4 * u + 1]->floats(), alone[u].p) << u;
    EXPECT_EQ(kept[4 * u + 2]->floats(), alone[u].m) << u;
    EXPECT_EQ(kept[4 * u + 3]->floats(), alone[u].v) << u;
  }
  // A bad gradient of one of the shards is noted.
  ok.set(0, false);
  kept[8]->set(3039, std::nanf(""));
  OK(average(group, stream));
  std::int32_t noted = -1;
  const Floats gradient = kept[8]->floats();
  kernels::noteBadGradient(group.shards[2].shard, gradient.data(), noted);
  EXPECT_EQ(noted, 103);
  EXPECT_EQ(bad.values()[0], noted);
  EXPECT_EQ(kept[1]->floats(), alone[0].p) << "nothing is updated";
}

TEST_F(UpdateKernels, ManyMembersTakeSeveralLaunches) {
  std::vector<Parameter> members;
  for (std::size_t m = 0; m < 150; ++m)
    members.push_back({"p", nullptr, {7}, {7}, 7 * m, Initializer::zeros(), m % 3 == 0});
  Storage storage = {
      "unit", Layout::Flat, {}, 0, 0, 1050, 0, Buffer(), {}, {members.data(), members.size()}};
  storage.shard.count = 528;
  for (int coordinate : {0, 1}) {
    const ShardOf shard{&storage, coordinate};
    Operands o(528, random);
    Device<float> p(o.p), g(o.g), lr(Floats{0.5f});
    Device<bool> ok(std::vector<int>{1});
    Device<StepState> state(std::vector<StepState>{o.state});
    Device<std::int32_t> bad(std::vector<std::int32_t>{-1});
    OK(descend(shard, false, g, lr, nullptr, ok, state, p, bad, stream));
    descendOnHost(shard, o, 0.5f, nullptr);
    EXPECT_EQ(p.floats(), o.p);
    // The same launches find the parameter of a bad gradient.
    for (std::size_t element : {500, 303}) {
      g.set(element, std::nanf(""));
      ok.set(0, false);
      OK(descend(shard, false, g, lr, nullptr, ok, state, p, bad, stream));
      EXPECT_EQ(bad.values()[0], int((528 * coordinate + element) / 7));
    }
    EXPECT_EQ(p.floats(), o.p) << "nothing is updated";
  }
}

TEST_F(UpdateKernels, TheFirstBadGradientIsNoted) {
  const Unit unit(Layout::Flat, 4560);
  Operands o(4560, random);
  o.g[4559] = std::numeric_limits<float>::infinity();
  o.g[600] = std::nanf("");
  Device<float> p(o.p), g(o.g), m(o.m), v(o.v), lr(Floats{0.1f});
  Device<bool> ok(std::vector<int>{0});
  Device<StepState> state(std::vector<StepState>{o.state});
  Device<std::int32_t> bad(std::vector<std::int32_t>{-1});
  OK(average({&unit.storage, 1}, false, g, lr, nullptr, ok, state, p, m, v, bad, stream));
  std::int32_t noted = -1;
  kernels::noteBadGradient({&unit.storage, 1}, o.g.data(), noted);
  EXPECT_EQ(noted, 105) << "element 5160 of the unit";
  EXPECT_EQ(bad.values()[0], noted);
  // A smaller number stays.
  OK(average({&unit.storage, 0}, false, g, lr, nullptr, ok, state, p, m, v, bad, stream));
  EXPECT_EQ(bad.values()[0], 103);
  OK(average({&unit.storage, 1}, false, g, lr, nullptr, ok, state, p, m, v, bad, stream));
  EXPECT_EQ(bad.values()[0], 103);
  EXPECT_EQ(p.floats(), o.p);
  EXPECT_EQ(m.floats(), o.m);
}

TEST_F(UpdateKernels, SquareSumIsInDouble) {
  for (std::size_t count : {0, 1, 5, 1000, 16384, 40001}) {
    const Floats values = normal(count, random);
    double sums[2];
    for (std::size_t offset : {0, 1}) {
      Device<float> values_(values, offset);
      Device<double> sum(1);
      OK(square_sum(count, values_, sum, stream));
      sums[offset] = sum.values()[0];
    }
    double expected = 0;
    kernels::squareSum(count, values.data(), &expected);
    EXPECT_NEAR(sums[0], expected, 1e-12 * expected);
    EXPECT_EQ(sums[0], sums[1]) << "alignment changes no bit";
  }
}

TEST_F(UpdateKernels, SquaresOfSeveralTensorsAreAddedUp) {
  const Counts<4> counts{{40001, 0, 16384, 5}};
  std::vector<Floats> values;
  double expected = 0;
  for (std::size_t count : counts.of) {
    values.push_back(normal(count, random));
    double sum = 0;
    kernels::squareSum(count, values.back().data(), &sum);
    expected += sum;
  }
  double ofCpu = 0;
  kernels::squareSums(counts, values[0].data(), values[1].data(), values[2].data(),
                      values[3].data(), &ofCpu);
  EXPECT_EQ(ofCpu, expected);
  double sums[2];
  for (std::size_t offset : {0, 1}) {
    Device<float> a(values[0], offset), b(values[1], offset), c(values[2]), d(values[3], offset);
    Device<double> sum(1);
    OK(square_sums(counts, a.data(), b.data(), c.data(), d.data(), sum.data(), stream));
    sums[offset] = sum.values()[0];
  }
  EXPECT_NEAR(sums[0], expected, 1e-12 * expected);
  EXPECT_EQ(sums[0], sums[1]) << "alignment changes no bit";
}

TEST_F(UpdateKernels, StepsAreThoseOfTheCpu) {
  for (Schedule::Kind kind : {Schedule::Constant, Schedule::Linear, Schedule::Cosine,
                              Schedule::InverseSqrt, Schedule::Wsd})
    for (int warmup : {0, 3}) {
      StepState expected{};
      expected.schedule =
          ScheduleOptions{kind, warmup, /*minimum=*/warmup * 5e-5f, /*decayShare=*/0.4f}.over(7);
      expected.baseLearningRate = 3e-4f;
      BadGradients noted{2, 3};
      Device<StepState> state(std::vector<StepState>{expected});
      Device<BadGradients> bad(std::vector<BadGradients>{noted});
      Device<float> lr(1);
      Device<bool> ok(1);
      for (int step = 0; step < 10; ++step) {
        OK(learning_rate(state, lr, stream));
        float rate = 0;
        kernels::learningRate(&expected, &rate);
        EXPECT_NEAR(lr.floats()[0], rate, 1e-6f * rate);
        ok.set(0, step % 4 != 1);
        OK(advance(state, ok, bad, state, bad, stream));
        const bool good = step % 4 != 1;
        kernels::advance(&expected, &good, &noted, &expected, &noted);
        const StepState got = state.values()[0];
        EXPECT_EQ(std::memcmp(&got, &expected, sizeof(got)), 0) << "step " << step;
        EXPECT_EQ(bad.values()[0].ofStep, noted.ofStep) << "step " << step;
        EXPECT_EQ(bad.values()[0].ofDeferred, noted.ofDeferred) << "step " << step;
      }
    }
}

TEST_F(UpdateKernels, ClippingIsThatOfTheCpu) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float clip : {0.5f, 1e-30f, infinity})
    for (float norm : {0.0f, 0.25f, 0.5f, 0.3333333f, 7.0f, 1e30f, infinity, std::nanf("")}) {
      StepState expected{};
      expected.clip = clip;
      Device<StepState> state(std::vector<StepState>{expected});
      Device<float> of(Floats{norm}), scale(1);
      OK(clip_scale(state, of, scale, stream));
      float factor = 0;
      kernels::clipScale(&expected, &norm, &factor);
      const float got = scale.floats()[0];
      EXPECT_EQ(std::memcmp(&got, &factor, sizeof(got)) == 0 || (got != got && factor != factor),
                true)
          << clip << " " << norm << ": " << got << " and " << factor;
    }
}

TEST_F(UpdateKernels, MicrobatchesCountTheirSamples) {
  // 10 samples on 3 ranks of 4 rows, in parts of 2, 7 of them counting in the last round.
  for (std::int64_t samples : {10, 7})
    for (std::int64_t index : {0, 1, 2}) {
      const Microbatches batches{/*part=*/2, /*batch=*/10, /*rows=*/4, index};
      StepState expected{};
      expected.samples = samples;
      Device<StepState> state(std::vector<StepState>{expected});
      Device<std::int64_t> count(1);
      std::int64_t all = 0;
      for (int part = 0; part < 2; ++part) {
        OK(microbatch_samples(batches, state, count, stream));
        std::int64_t own = 0;
        kernels::microbatchSamples(batches, &expected, &own);
        EXPECT_EQ(count.values()[0], own);
        all += count.values()[0];
        // The same part by its number, in a later microbatch, and where all samples count.
        Microbatches known = batches;
        known.number = part;
        StepState later = expected;
        later.microbatch = 5;
        Device<StepState> later_(std::vector<StepState>{later});
        OK(microbatch_samples(known, later_, count, stream));
        EXPECT_EQ(count.values()[0], own);
        kernels::microbatchSamples(known, &later, &own);
        EXPECT_EQ(count.values()[0], own);
        OK(microbatch_samples(known, count, stream));
        EXPECT_EQ(count.values()[0], std::clamp<std::int64_t>(10 - 4 * index - 2 * part, 0, 2));
        kernels::microbatchSamplesAt(known, &own);
        EXPECT_EQ(count.values()[0], own);
        OK(next_microbatch(2, state, state, stream));
        expected.microbatch = (expected.microbatch + 1) % 2;
        EXPECT_EQ(state.values()[0].microbatch, expected.microbatch);
      }
      EXPECT_EQ(all, std::clamp<std::int64_t>(samples - 4 * index, 0, 4));
      EXPECT_EQ(expected.microbatch, 0);
    }
}

TEST_F(UpdateKernels, UpdatesAreAcceptableUpToTheLimitsOfTheState) {
  StepState at;
  at.lossLimit = 3;
  at.normLimit = 0.5;
  Device<StepState> limits(std::vector<StepState>{at}), none(std::vector<StepState>{StepState{}});
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Floats losses = {-4, 3, std::nextafter(3.0f, 4.0f), 1e30f, infinity, -infinity, nan};
  const Floats norms = {0, 0.5f, std::nextafter(0.5f, 1.0f), 1e30f, infinity, nan};
  for (float loss : losses)
    for (float norm : norms) {
      Device<float> a(Floats{loss}), b(Floats{norm});
      for (Device<StepState> *state : {&limits, &none}) {
        Device<bool> ok(1);
        const StepState own = state->values()[0];
        bool expected = false;
        kernels::acceptable(&own, &loss, &norm, &expected);
        const bool isFinite = std::isfinite(loss) && std::isfinite(norm);
        EXPECT_EQ(expected, isFinite && (state == &none || (loss <= 3 && norm <= 0.5f)));
        OK(acceptable(state->data(), a.data(), b.data(), ok.data(), stream));
        EXPECT_EQ(ok.values()[0], expected) << loss << " " << norm;
      }
    }
}

} // namespace
