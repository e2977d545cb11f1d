//===- FileReaders.h - how generated programs read files --------*- C++ -*-===//

#ifndef TEST_MUTATION_FILEREADERS_H
#define TEST_MUTATION_FILEREADERS_H

#include "runtime/program/Program.h"

#include <random>
#include <string>
#include <utility>

namespace fsdp::mutation {

/// The files that a program reads: weights, their index, samples, tokens.
enum FileKind { kWeights, kIndex, kData, kTokenFile, kKinds };

/// The parameters of the program that reads them: `table` (2, 3) and `bias` (3).
extern const rt::Table<rt::Parameter> parametersRead;

/// The header and the data of a right file.
std::pair<std::string, std::string> makeRight(FileKind kind, std::mt19937 &random);
/// What they are in the file.
std::string joinFile(FileKind kind, const std::string &header, const std::string &data);
/// A name for such a file.
const char *fileName(FileKind kind);

/// Changes some bytes, or the length.
void mutateBytes(std::string &bytes, std::mt19937 &random);

/// Takes the file as a generated program does; its words where it refuses, "" where it takes it.
std::string readByProgram(FileKind kind, const std::string &path);

} // namespace fsdp::mutation

#endif // TEST_MUTATION_FILEREADERS_H
