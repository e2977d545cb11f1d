//===- Symbols.cpp - what the program's symbol table says of kernels --------------===//
//
// A shared variable of a kernel is a thread-local one whose name begins with the kernel's: `_ZZ`,
// what the kernel's own name has behind `_Z`, `E`, the variable.
//
//===----------------------------------------------------------------------===//

#include "Symbols.h"

#include "Failure.h"
#include "Grid.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FSDP_EMULATOR_SYMBOLIZER // the build names the one that it found
#define FSDP_EMULATOR_SYMBOLIZER "llvm-symbolizer"
#endif

namespace emulator {

namespace {

struct Table {
  std::map<std::uintptr_t, std::string> functions; ///< by address in the running program
  std::map<std::string, std::size_t> variables;    ///< thread-local ones: bytes by name
  std::vector<ThreadLocal> threadLocals;           ///< the same
};

std::uintptr_t loadAddress() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *object, std::size_t, void *data) {
        *static_cast<std::uintptr_t *>(data) = object->dlpi_addr;
        return 1; // the program itself comes first
      },
      &address);
  return address;
}

void read(const char *file, Table &table) {
  const auto *header = reinterpret_cast<const Elf64_Ehdr *>(file);
  const auto *sections = reinterpret_cast<const Elf64_Shdr *>(file + header->e_shoff);
  const std::uintptr_t base = loadAddress();
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    const char *names = file + sections[sections[i].sh_link].sh_offset;
    const auto *symbols = reinterpret_cast<const Elf64_Sym *>(file + sections[i].sh_offset);
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const char *name = names + symbols[s].st_name;
      if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_shndx != SHN_UNDEF)
        table.functions.emplace(base + symbols[s].st_value, name);
      else if (ELF64_ST_TYPE(symbols[s].st_info) == STT_TLS && !std::strstr(name, "fsdpGap")) {
        table.variables[name] += symbols[s].st_size;
        table.threadLocals.push_back({name, symbols[s].st_value, symbols[s].st_size});
      }
    }
  }
}

Table readOwn() {
  Table table;
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0)
    return table;
  if (fstat(file, &status) == 0) {
    void *memory = mmap(nullptr, std::size_t(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) {
      read(static_cast<const char *>(memory), table);
      munmap(memory, std::size_t(status.st_size));
    }
  }
  close(file);
  return table;
}

std::string symbolizedPlace(std::uintptr_t returnAddress) {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  const std::uintptr_t offset = returnAddress - loadAddress() - 1;
  std::string places;
  if (length > 0) {
    program[length] = 0;
    const std::string command =
        formatted(FSDP_EMULATOR_SYMBOLIZER
                  " --functions=none --relativenames --inlines --obj='%s' 0x%zx 2>/dev/null",
                  program, static_cast<std::size_t>(offset));
    if (FILE *output = popen(command.c_str(), "r")) {
      // A line for the place, then one for each call that was inlined around it.
      char line[1000];
      for (int told = 0; told < 4 && fgets(line, sizeof(line), output);) {
        std::string place(line, strcspn(line, "\n"));
        place.erase(std::min(place.size(), place.rfind(':'))); // the column
        place.erase(0, place.rfind('/') + 1);
        if (place.empty() || place[0] == '?' || place.compare(0, 14, "vector_types.h") == 0)
          continue;
        places += (told++ ? ", called at " : "") + place;
      }
      pclose(output);
    }
  }
  return places.empty() ? formatted("code at %#zx", static_cast<std::size_t>(offset)) : places;
}

} // namespace

namespace {
const Table &ownTable() {
  static const Table *table = new Table(readOwn());
  return *table;
}
} // namespace

const std::vector<ThreadLocal> &sharedVariables() { return ownTable().threadLocals; }

KernelSymbol symbolOf(const void *kernel) {
  const Table &table = ownTable();
  KernelSymbol symbol;
  const auto found = table.functions.find(reinterpret_cast<std::uintptr_t>(kernel));
  if (found == table.functions.end())
    return symbol;
  symbol.name = found->second;
  const std::string prefix = "_ZZ" + symbol.name.substr(2) + "E";
  for (auto it = table.variables.lower_bound(prefix);
       it != table.variables.end() && it->first.compare(0, prefix.size(), prefix) == 0; ++it)
    symbol.sharedBytes += it->second;
  return symbol;
}

std::string demangled(const std::string &symbol) {
  int status = 0;
  char *readable = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = readable ? readable : symbol;
  std::free(readable);
  return name;
}

std::string kernelName(const void *kernel) {
  const std::string symbol = symbolOf(kernel).name;
  if (symbol.empty())
    return formatted("at %p", kernel);
  const std::string name = demangled(symbol);
  // "(anonymous namespace)" is part of a name, the parameters are not.
  std::size_t end = name.find('(');
  while (end != std::string::npos && name.compare(end, 21, "(anonymous namespace)") == 0)
    end = name.find('(', end + 1);
  return name.substr(0, end);
}

std::string sourcePlace(std::uintptr_t returnAddress) {
  static std::mutex mutex;
  static auto *known = new std::map<std::uintptr_t, std::string>; // asking takes long
  std::lock_guard<std::mutex> lock(mutex);
  std::string &place = (*known)[returnAddress];
  if (place.empty())
    place = symbolizedPlace(returnAddress);
  return place;
}

} // namespace emulator
