#include "tools/fsdpc-log/LogReader.h"

#include "base/Descriptor.h"
#include "base/Error.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace fsdpc_log {

using base::Error;

namespace {

constexpr std::size_t kMaxLine = 16 << 20;
constexpr int kMaxDepth = 16;

/// Takes the numbers of the outermost object, without building a tree: a log may have millions of
/// lines.
class StepReader final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit StepReader(LogEntry &entry) : entry(entry) {}

  bool isObject = false, hasStep = false;
  std::string other; ///< "run", "restart" or "rollback"
  bool tooDeep = false;

  bool null() override { return number(NAN); }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override { return whole(value); }
  bool number_unsigned(std::uint64_t value) override {
    return value <= INT64_MAX ? whole(static_cast<std::int64_t>(value))
                              : number(static_cast<double>(value));
  }
  bool number_float(double value, const std::string &) override { return number(value); }
  bool string(std::string &) override { return true; }
  bool binary(nlohmann::json::binary_t &) override { return true; }
  bool start_object(std::size_t) override {
    if (depth == 0)
      isObject = true;
    else if (depth == 1 && (name == "run" || name == "restart" || name == "rollback"))
      other = name;
    return deeper();
  }
  bool key(std::string &text) override {
    if (depth == 1)
      name = text;
    return true;
  }
  bool end_object() override { return --depth, true; }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return --depth, true; }
  bool parse_error(std::size_t, const std::string &, const nlohmann::json::exception &) override {
    return false;
  }

private:
  bool deeper() {
    tooDeep = ++depth > kMaxDepth;
    return !tooDeep;
  }
  bool number(double value) {
    if (depth == 1 && isObject)
      entry.values.emplace_back(name, value);
    return true;
  }
  bool whole(std::int64_t value) {
    if (depth == 1 && isObject && name == "step")
      entry.step = value, hasStep = true;
    return number(static_cast<double>(value));
  }

  LogEntry &entry;
  int depth = 0;
  std::string name;
};

/// `text` with null for NaN and Infinity outside of strings, as other programs write these.
std::string withoutNonNumbers(std::string_view text) {
  std::string result;
  bool inString = false;
  for (std::size_t i = 0; i < text.size();) {
    if (inString && text[i] == '\\' && i + 1 < text.size()) {
      result.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    inString ^= text[i] == '"';
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "-NaN", "NaN"})
      if (!inString && !replaced && text.substr(i, word.size()) == word) {
        result += "null";
        i += word.size();
        replaced = true;
      }
    if (!replaced)
      result += text[i++];
  }
  return result;
}

} // namespace

void note(const std::string &text) {
  std::fprintf(stderr, "fsdpc-log: note: %s\n", base::printableMessage(text).c_str());
}

const double *LogEntry::find(std::string_view name) const {
  for (const auto &[key, value] : values)
    if (key == name)
      return &value;
  return nullptr;
}

std::string parseEntry(std::string_view text, LogEntry &entry) {
  std::string replaced;
  for (bool again : {false, true}) {
    entry.values.clear();
    entry.step = 0;
    entry.kind = LogEntry::Step;
    if (again)
      text = replaced = withoutNonNumbers(text);
    StepReader reader(entry);
    const bool isJson = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
    if (reader.tooDeep)
      return "is nested deeper than " + std::to_string(kMaxDepth) + " levels";
    if (!isJson && !again)
      continue;
    if (!isJson || !reader.isObject)
      return "is not a JSON object";
    if (!reader.other.empty()) {
      entry.kind = reader.other == "run"       ? LogEntry::Run
                   : reader.other == "restart" ? LogEntry::Restart
                                               : LogEntry::Rollback;
      entry.record = nlohmann::json::parse(text.begin(), text.end())[reader.other];
      return "";
    }
    return reader.hasStep ? "" : "has no whole number 'step'";
  }
  return "is not a JSON object";
}

void SkippedLines::add(const std::string &fault, std::int64_t line) {
  Lines &lines = byFault[fault];
  if (++lines.count <= 10)
    lines.first.push_back(line);
}

std::vector<std::string> SkippedLines::describe(const std::string &file) const {
  std::vector<std::string> texts;
  for (const auto &[fault, lines] : byFault) {
    std::string numbers;
    for (const std::int64_t line : lines.first)
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(line);
    const std::int64_t more = lines.count - static_cast<std::int64_t>(lines.first.size());
    texts.push_back("'" + file + "': skipped " +
                    (lines.count == 1 ? "line " + numbers + ", which " + fault
                                      : std::to_string(lines.count) + " lines, each of which " +
                                            fault + ": " + numbers) +
                    (more ? " and " + std::to_string(more) + " more" : ""));
  }
  return texts;
}

void EntryStream::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (end != bytes.npos && rest.empty() && !isLong) {
      line(part);
    } else {
      isLong |= rest.size() + part.size() > kMaxLine;
      isLong ? rest.clear() : void(rest.append(part));
      if (end != bytes.npos) {
        line(rest);
        drop();
      }
    }
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
  }
}

void EntryStream::line(std::string_view text) {
  ++lines;
  if (!text.empty() && text.back() == '\r')
    text.remove_suffix(1);
  if (text.empty() && !isLong)
    return;
  entry.line = lines;
  const std::string fault = isLong ? "has more than 16 MiB" : parseEntry(text, entry);
  if (!fault.empty())
    return skipped.add(fault, lines);
  ++taken;
  take(entry);
}

void EntryStream::end() {
  // An editor may have left out the end of the last line; a part of an object is not an object.
  if (!isLong && parseEntry(rest, entry).empty())
    line(rest);
  else if (!rest.empty() || isLong)
    skipped.add("is not complete (a run may be writing it)", lines + 1);
  drop();
}

void readBytes(const std::string &path, const std::function<void(std::string_view)> &take) {
  base::requireReadable(path);
  const base::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    throw Error("cannot open '" + path + "': " + std::strerror(errno));
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error("cannot read '" + path + "': " + std::strerror(errno));
    if (got == 0)
      return;
    take({buffer.data(), static_cast<std::size_t>(got)});
  }
}

void readLog(const std::string &path, const TakeEntry &take) {
  EntryStream stream(take);
  bool isEmpty = true;
  readBytes(path, [&](std::string_view bytes) {
    isEmpty = false;
    stream.add(bytes);
  });
  stream.end();
  const std::vector<std::string> skipped = stream.skipped.describe(path);
  if (stream.taken == 0 && !isEmpty)
    throw Error(
        "'" + path + "' is not a log: " +
        (skipped.empty() ? "all of its lines are empty" : skipped.front().substr(path.size() + 4)) +
        "; expected lines as a program writes them with --log");
  for (const std::string &text : skipped)
    note(text);
}

void FieldNames::add(const LogEntry &entry) {
  if (entry.kind == LogEntry::Step)
    for (const auto &value : entry.values)
      if (names.find(value.first) == names.end())
        names.insert(value.first);
}

static bool contains(const std::vector<std::string> &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool FieldNames::haveAll(const std::vector<std::string> &fields,
                         const std::vector<std::string> &mayLack) const {
  return std::all_of(fields.begin(), fields.end(), [&](const std::string &field) {
    return names.count(field) || contains(mayLack, field);
  });
}

void FieldNames::require(const std::vector<std::string> &fields, const char *option,
                         const std::vector<std::string> &files,
                         const std::vector<std::string> &mayLack) const {
  for (const std::string &field : fields) {
    if (names.empty() || names.count(field) || contains(mayLack, field))
      continue;
    std::string list;
    for (const std::string &name : names)
      list += (list.empty() ? "" : ", ") + name;
    throw Error(std::string(option) + ": got " + base::inQuotes(field) + ", which no step of " +
                (files.size() == 1 ? base::inQuotes(files.front()) : "these logs") +
                " has, expected of: " + list);
  }
}

} // namespace fsdpc_log
