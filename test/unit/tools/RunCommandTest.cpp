#include "tools/fsdpc-log/RunCommand.h"
#include "base/Error.h"
#include "base/ShellWords.h"

#include <gtest/gtest.h>

using namespace fsdpc_log;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;

TEST(RunCommandTest, ReadsShellQuotedWords) {
  const Words words = {"--data", "it's", "", "a b", "$x\\", "--lr=0.1", "*"};
  std::string line;
  for (const std::string &word : words)
    base::addShellWord(line, word);
  EXPECT_EQ(shellWords(line), words) << line;
  EXPECT_EQ(shellWords(""), Words());
  EXPECT_EQ(shellWords("'a"), std::nullopt);
}

json recordOf(const std::string &arguments) {
  return {{"model", "m"},
          {"mesh", "fsdp=2"},
          {"seed", 3},
          {"version", "v"},
          {"ranks", 2},
          {"plan", "fsdp=2"},
          {"program", "./train"},
          {"arguments", arguments},
          {"compiled", "--mesh=fsdp=2"},
          {"compiler", {{"name", "mlp"}}},
          {"directory", "/a b"}};
}

std::string lastLine(const json &record) {
  const std::string text = runCommand({record}, 1, "log");
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST(RunCommandTest, IsTheCommandOfTheRun) {
  EXPECT_EQ(runCommand({recordOf("--data d --steps 9")}, 1, "log"),
            "# run 1 of 1 in 'log': m, mesh fsdp=2, seed 3, fsdpc v\n"
            "# compiled with: mlp --mesh=fsdp=2 -o ./train\n"
            "cd '/a b' && ./train --data d --steps 9\n");
}

TEST(RunCommandTest, NamesTheFilesOfTheRun) {
  json record = recordOf("--data d");
  record["files"] = {
      {"data", {{"files", 100}, {"bytes", 5}, {"digest", "a"}}},
      {"val_data", {{"path", "v"}, {"bytes", 6}, {"digest", "b"}}},
      {"init", {{{"path", "i"}, {"bytes", 7}, {"digest", "c"}}, {{"path", "j"}, {"bytes", 8}}}}};
  EXPECT_NE(runCommand({record}, 1, "log")
                .find("# reads --data 100 files: 5 bytes, digest a\n"
                      "# reads --val-data v: 6 bytes, digest b\n"
                      "# reads --init i: 7 bytes, digest c\n# reads --init j: 8 bytes"),
            std::string::npos);
}

TEST(RunCommandTest, ResumesFromTheSameCheckpoint) {
  json record = recordOf("--data d --resume=latest --save c --start-over");
  EXPECT_EQ(lastLine(record), "cd '/a b' && ./train --data d --save c\n")
      << "there was no checkpoint then, and there may be some now";
  record["resumed"] = {{"folder", "c/step-00000004"}, {"step", 4}, {"digest", "x"}};
  EXPECT_EQ(lastLine(record), "cd '/a b' && ./train --data d --save c --resume=c/step-00000004\n");
  record["arguments"] = "--resume c --data d";
  EXPECT_EQ(lastLine(record), "cd '/a b' && ./train --data d --resume=c/step-00000004\n");
}

TEST(RunCommandTest, HasEnvironmentPlanAndLauncher) {
  json record = recordOf("--data d");
  record["environment"] = {{"OMP_NUM_THREADS", "2"}, {"FSDP_X", "a b"}};
  record["compiled"] = "'--mesh=fsdp=2|fsdp=1'";
  EXPECT_EQ(lastLine(record), "cd '/a b' && env FSDP_X='a b' OMP_NUM_THREADS=2 ./train --data d "
                              "--plan=fsdp=2\n");
  record = recordOf("--data d");
  for (const auto &[by, start] :
       {std::pair("torchrun", "torchrun --nproc-per-node=2 --no-python "),
        std::pair("Open MPI", "mpirun -n 2 "), std::pair("Slurm", "srun -n 2 "),
        std::pair("the launcher", "")}) {
    record["launcher"] = by;
    EXPECT_EQ(lastLine(record), std::string("cd '/a b' && ") + start + "./train --data d\n");
  }
}

TEST(RunCommandTest, CommentsStayInTheirLines) {
  json record = recordOf("--data d");
  record["model"] = "m\nrm -rf x";
  EXPECT_EQ(runCommand({record}, 1, "log").find("\nrm"), std::string::npos);
}

TEST(RunCommandTest, RefusesIncompleteRecords) {
  const auto refused = [](const std::vector<json> &records, std::size_t number) -> std::string {
    try {
      return runCommand(records, number, "log");
    } catch (const base::Error &error) {
      return error.what();
    }
  };
  EXPECT_EQ(refused({recordOf("--data d")}, 2), "got --run 2, expected 1 to 1, the runs of 'log'");
  json record = recordOf("--data d");
  record.erase("program");
  EXPECT_EQ(refused({record}, 1), "the record of run 1 in 'log' lacks 'program' or 'arguments': an "
                                  "earlier version wrote it");
}

} // namespace
