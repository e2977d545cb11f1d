#include "tools/fsdpc-log/LogReader.h"
#include "base/Error.h"
#include "test/unit/base/TemporaryFile.h"
#include "tools/fsdpc-log/LogTable.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdpc_log;
using fsdp::rt::TemporaryFile;

namespace {

std::string faultOf(const std::string &text) {
  LogEntry entry;
  return parseEntry(text, entry);
}

TEST(LogReaderTest, TakesTheNumbersOfAStep) {
  LogEntry entry;
  ASSERT_EQ(
      parseEntry(R"({"step": 7, "loss": 2.5, "lr": 1e-3, "x": "text", "y": [1, {"loss": 9}]})",
                 entry),
      "");
  EXPECT_EQ(entry.kind, LogEntry::Step);
  EXPECT_EQ(entry.step, 7);
  ASSERT_EQ(entry.values.size(), 3u) << "texts and what is nested are no values";
  EXPECT_EQ(*entry.find("loss"), 2.5);
  EXPECT_EQ(*entry.find("lr"), 1e-3);
  EXPECT_EQ(entry.find("x"), nullptr);
  // The next line has nothing of this one.
  ASSERT_EQ(parseEntry(R"({"step": 8})", entry), "");
  EXPECT_EQ(entry.find("loss"), nullptr);
}

TEST(LogReaderTest, NonFiniteValuesAreNan) {
  LogEntry entry;
  ASSERT_EQ(
      parseEntry(R"({"step": 1, "a": null, "b": NaN, "c": -Infinity, "say \"NaN": 2})", entry), "");
  for (const char *name : {"a", "b", "c"})
    EXPECT_TRUE(std::isnan(*entry.find(name))) << name;
  EXPECT_EQ(*entry.find("say \"NaN"), 2) << "a text is as it was";
}

TEST(LogReaderTest, DistinguishesRecordsFromSteps) {
  LogEntry entry;
  ASSERT_EQ(
      parseEntry(R"({"restart":{"number":1,"after_step":20,"mesh":"fsdp=2","cause":"c"}})", entry),
      "");
  EXPECT_EQ(entry.kind, LogEntry::Restart);
  EXPECT_EQ(describeRecord(entry), "restart 1 after step 20, on fsdp=2: c");
  ASSERT_EQ(parseEntry(R"({"rollback":{"number":2,"from_step":9,"to_step":4,"cause":"c"}})", entry),
            "");
  EXPECT_EQ(describeRecord(entry), "rollback 2 from step 9 to step 4: c");
  ASSERT_EQ(parseEntry(R"({"run":{"model":"m","mesh":"fsdp=2","steps":5,"batch":10,"version":"v",
                          "resumed":{"step":3}}})",
                       entry),
            "");
  EXPECT_EQ(describeRecord(entry),
            "run: m, mesh fsdp=2, 5 steps of 10 samples, fsdpc v, resumed from step 3");
}

TEST(LogReaderTest, NamesInvalidLines) {
  EXPECT_EQ(faultOf("{\"step\": 1"), "is not a JSON object");
  EXPECT_EQ(faultOf("[1]"), "is not a JSON object");
  EXPECT_EQ(faultOf("hello NaN"), "is not a JSON object");
  EXPECT_EQ(faultOf("{\"loss\": 1}"), "has no whole number 'step'");
  EXPECT_EQ(faultOf("{\"step\": 1.5}"), "has no whole number 'step'");
  EXPECT_EQ(faultOf("{\"step\": 1, \"a\": " + std::string(40, '[') + std::string(40, ']') + "}"),
            "is nested deeper than 16 levels");
}

TEST(LogReaderTest, LinesMayComeInPartsOfAnySize) {
  const std::string text = "{\"step\": 1}\r\n\nbad\n{\"step\": 2}\n{\"step\": 3";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::vector<std::pair<std::int64_t, std::int64_t>> got;
    EntryStream stream([&](const LogEntry &entry) { got.push_back({entry.line, entry.step}); });
    for (std::size_t at = 0; at < text.size(); at += size)
      stream.add(std::string_view(text).substr(at, size));
    stream.end();
    EXPECT_EQ(got, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {4, 2}})) << size;
    EXPECT_EQ(stream.skipped.describe("f"),
              (std::vector<std::string>{
                  "'f': skipped line 3, which is not a JSON object",
                  "'f': skipped line 5, which is not complete (a run may be writing it)"}));
  }
}

TEST(LogReaderTest, TheLastLineNeedsNoEnd) {
  EntryStream stream([](const LogEntry &) {});
  stream.add("{\"step\": 1}\n{\"step\": 2}");
  stream.end();
  EXPECT_EQ(stream.taken, 2);
  EXPECT_TRUE(stream.skipped.empty());
}

TEST(LogReaderTest, ALineIsNotTakenIntoMemoryWithoutEnd) {
  EntryStream stream([](const LogEntry &) {});
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 40; ++i)
    stream.add(part);
  stream.add("\n{\"step\": 1}\n");
  EXPECT_EQ(stream.taken, 1);
  EXPECT_EQ(stream.skipped.describe("f"),
            std::vector<std::string>{"'f': skipped line 1, which has more than 16 MiB"});
}

TEST(LogReaderTest, ManySkippedLinesAreCounted) {
  SkippedLines skipped;
  for (int line = 1; line <= 12; ++line)
    skipped.add("is bad", line);
  EXPECT_EQ(skipped.describe("f"),
            std::vector<std::string>{"'f': skipped 12 lines, each of which is bad: 1, 2, 3, 4, 5, "
                                     "6, 7, 8, 9, 10 and 2 more"});
}

TEST(LogReaderTest, AFileOfOtherLinesIsNoLog) {
  const TemporaryFile file("log");
  file.write("hello\nworld\n");
  try {
    readLog(file.path, [](const LogEntry &) {});
    FAIL();
  } catch (const base::Error &error) {
    EXPECT_EQ(
        std::string(error.what()),
        "'" + file.path +
            "' is not a log: skipped 2 lines, each of which is not a JSON object: 1, 2; expected "
            "lines as a program writes them with --log");
  }
  file.write("\n\n");
  EXPECT_THROW(readLog(file.path, [](const LogEntry &) {}), base::Error);
}

TEST(LogTableTest, ShowsValuesAsPeopleReadThem) {
  EXPECT_EQ(shownValue("tokens_per_s", 12345.6), "12.3k");
  EXPECT_EQ(shownValue("tokens", 999.6), "1k");
  EXPECT_EQ(shownValue("mfu", 0.4123), "41.2%");
  EXPECT_EQ(shownValue("seconds", 3725.9), "1:02:05");
  EXPECT_EQ(shownValue("seconds", 65), "1:05");
  EXPECT_EQ(shownValue("step", 1234567), "1234567");
  EXPECT_EQ(shownValue("loss", 2.302585093), "2.30259");
  EXPECT_EQ(shownValue("loss", NAN), "nan");
  EXPECT_EQ(shownValue("loss", -INFINITY), "-inf");
}

} // namespace
